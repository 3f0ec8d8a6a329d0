#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace tutti {

// One case of a golden HDF5 file (see README.md beside this): inputs under "in/", expected values under
// "out/", parameters as attributes.
class GoldenCase {
 public:
  // `name` is a group of the file at `path`: "case_3".
  GoldenCase(const std::string& path, const std::string& name);
  ~GoldenCase();
  GoldenCase(const GoldenCase&) = delete;

  at::Tensor tensor(const std::string& dataset) const;  // "in/p0"; float32, float64, int64 or uint8 as stored
  std::vector<std::string> names(const std::string& group) const;  // datasets in a group, sorted
  bool holds(const std::string& path) const;                       // such a dataset or group

  const std::string& title() const { return title_; }
  bool has(const std::string& attribute) const;  // there, and not "None"
  bool is_text(const std::string& attribute) const;
  std::vector<std::string> attributes() const;
  std::string text(const std::string& attribute) const;
  double number(const std::string& attribute) const;
  std::vector<double> numbers(const std::string& attribute) const;

  // Expects (gtest) no parameters (attributes) and no inputs (datasets of "in"; empty = any) but these, so
  // that none is ignored in silence.
  void expect_only(std::set<std::string> parameters, std::set<std::string> inputs = {}) const;

  // Expects (gtest) no expected values (datasets and groups of "out") but these.
  void expect_only_outputs(const std::set<std::string>& outputs) const;

  // Asserts (gtest) |got - out| <= atol + rtol |out| elementwise, with the tolerances of the case; of its
  // weights weights_atol, where it has one.
  void expect_close(const at::Tensor& got, const std::string& dataset) const;

 private:
  double atol_of(const std::string& dataset) const;

  int64_t file_ = -1;
  int64_t group_ = -1;
  std::string title_;
};

// The names of all cases of a golden file, in their order; none where there is no such file.
std::vector<std::string> golden_cases(const std::string& path);

// Where the golden data is: the environment's TUTTI_GOLDEN_DIR, else this folder.
std::string golden_folder();
std::string golden_path(const std::string& file);
bool is_own_folder();
std::string own_path(const std::string& file);  // in this folder, whatever the environment says

// The parts of a list of texts: "1ep,0.8dur".
std::vector<std::string> parts_of(const std::string& joined);

// The value of `key` in a test's table; throws, naming `what`, for other keys.
template <class V>
const V& known(const std::map<std::string, V>& table, const std::string& key, const std::string& what) {
  const auto found = table.find(key);
  if (found == table.end()) throw std::logic_error("no test knows the " + what + " '" + key + "'");
  return found->second;
}

}  // namespace tutti
