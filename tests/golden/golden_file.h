#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/setting.h"

namespace tutti {

// One case of a golden HDF5 file (see README.md beside this): inputs under "in/", expected values under
// "out/", parameters as attributes.
class GoldenCase {
 public:
  // `file` is a name in tests/golden, `name` a group in it: "case_3".
  GoldenCase(const std::string& file, const std::string& name);
  ~GoldenCase();
  GoldenCase(const GoldenCase&) = delete;

  at::Tensor tensor(const std::string& dataset) const;  // "in/p0"; float32, float64, int64 or uint8 as stored
  std::vector<std::string> names(const std::string& group) const;  // datasets in a group, sorted

  bool has(const std::string& attribute) const;
  std::string text(const std::string& attribute) const;
  double number(const std::string& attribute) const;
  std::vector<double> numbers(const std::string& attribute) const;

  // Asserts (gtest) |got - out| <= atol + rtol |out| elementwise, with the tolerances of the case.
  void expect_close(const at::Tensor& got, const std::string& dataset) const;

 private:
  int64_t file_ = -1;
  int64_t group_ = -1;
  std::string title_;
};

// The names of all cases of a golden file, in their order.
std::vector<std::string> golden_cases(const std::string& file);

std::string golden_path(const std::string& file);

// A recipe's section as the reader would give it: {"lr", 0.1}, ...
// golden_list({1.0, 2.0}) is a list's value.
Setting::Value golden_list(const std::vector<Setting::Value>& items);
Setting golden_section(std::vector<std::pair<std::string, Setting::Value>> keys);

}  // namespace tutti
