#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint/state_patterns.h"
#include "io/checkpoint/tensor_source.h"
#include "models/weight_names.h"
#include "recipe/setting.h"

namespace tutti {

// How weights of a file are matched with the model's: the keys weights_* of [model].
struct WeightsOptions {
  bool strict = true;
  StatePatterns ignored = {};             // of names in the file or in the model, with '.' as '/'
  std::vector<NamePattern> renames = {};  // of names in the file; the first that fits counts

  static WeightsOptions read(const Setting& model);  // throws UserError with the key
};

// Weights of a file under the model's names. Ignored tensors are left out, and constants that the model does
// not save.
class NamedWeights final : public TensorSource {
 public:
  // A tensor that the file holds twice and the model once.
  struct Tied {
    std::string file_name;
    std::string name;
  };

  // `known`: the model's names. Throws UserError with `path` if the file has two tensors for a name.
  NamedWeights(std::unique_ptr<TensorSource> file, const std::string& path,
               const std::set<std::string>& known, const WeightsOptions& options);

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override;

  const TensorSource& file() const { return *file_; }
  const std::string& name_in_file(const std::string& name) const { return homes_.at(name).file_name; }
  const std::vector<Tied>& tied() const { return tied_; }
  // Patterns that fit no name of the file; patterns to ignore, nor of the model.
  std::vector<std::string> idle_patterns() const { return idle_; }

 private:
  struct Home {
    std::string file_name;
    std::size_t likelihood = 0;  // 0 = the model's own name
  };

  void add(const std::string& file_name, const std::string& renamed, const std::set<std::string>& known);
  void resolve(const std::string& name, const Home& first, const Home& second);

  std::unique_ptr<TensorSource> file_;
  const std::string& path_;
  std::map<std::string, Home> homes_;
  std::vector<Tied> tied_;
  std::vector<std::string> idle_;
};

}  // namespace tutti
