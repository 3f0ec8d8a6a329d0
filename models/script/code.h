#pragma once

#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::jit {
struct Node;
}

// Runs the functions of TorchScript node by node by libtorch's operators, without its executors: no fused or
// specialised kernels, so that runs have equal bits.
namespace tutti::script {

using Values = std::vector<c10::IValue>;
using Object = c10::intrusive_ptr<c10::ivalue::Object>;

// The modules that code uses.
class Host {
 public:
  virtual ~Host() = default;
  virtual c10::IValue attribute(const Object& module, std::size_t slot) = 0;
  // Calls forward of a module that is a layer; nullopt: it is none, its code is to be run.
  virtual std::optional<c10::IValue> call(const Object& module, const Values& arguments) = 0;
  // Where constants go.
  virtual c10::Device device() const = 0;
};

// Functions that are prepared on their first call. For one thread at a time.
class Codes {
 public:
  Codes();
  ~Codes();

  // A run, with all that it calls, takes so many steps at most; each item of a list or a text, which a
  // step takes or in which it results, is a step more.
  static constexpr int64_t kMostSteps = 10'000'000;
  static constexpr int kMostCalls = 1'000;  // within each other

  // Throws UserError with the operator and the line of the Python file; of a trial, OperatingError if the
  // process is asked to stop.
  c10::IValue run(torch::jit::Function& function, Values arguments, Host& host);

  // A trial is a run before a training: nothing is lost if a request to stop ends it.
  void set_trial(bool is_trial) { is_trial_ = is_trial; }

 private:
  friend class Runner;
  struct Code;
  const Code& of(torch::jit::Function& function);
  void count(const torch::jit::Node& node, int64_t steps);

  int depth_ = 0;  // of calls
  int64_t steps_ = 0;
  bool is_trial_ = false;
  int64_t looks_ = 0;
  std::unordered_map<torch::jit::Function*, std::unique_ptr<Code>> codes_;
};

// "aten::linear (net.py:31)"
std::string place_of(const torch::jit::Node& node);
// Throws UserError for an operator, or a method of a class of libtorch's, that a file may not call.
void require_known(const torch::jit::Node& node);
void require_known(const torch::jit::Function& function);

}  // namespace tutti::script
