#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/conv.h"
#include "models/layers/layer.h"

namespace tutti {

// The arguments of a layer's text, "1, 8, kernel_size=(3, 3), bias=False", by name. All errors are UserErrors
// that name the argument.
class LayerArguments {
 public:
  // `names`: of all arguments, in torch's order.
  LayerArguments(const std::string& list, std::vector<std::string> names);

  // An integer, or a product of integers as 28*28. Without `fallback` the argument is required.
  int64_t integer(const std::string& name, std::optional<int64_t> fallback, int64_t min) const;
  // Reads 3 or, in parentheses, `dimensions` integers: (3, 5). One number stands for all.
  Shape integers(const std::string& name, std::optional<int64_t> fallback, int64_t min,
                 std::size_t dimensions) const;
  Extent2d pair(const std::string& name, std::optional<int64_t> fallback, int64_t min) const;
  // One or more integers: 3, (3,), (3, 5).
  Shape shape(const std::string& name) const;
  double number(const std::string& name, double fallback) const;
  // A positive number, or two in parentheses: 2, (2.0, 1.5).
  std::array<double, 2> factors(const std::string& name) const;
  bool flag(const std::string& name, bool fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  bool holds(const std::string& name) const { return text(name, "None") != "None"; }

 private:
  bool is_given(const std::string& name, bool has_fallback) const;
  Shape tuple(const std::string& name) const;
  void require_range(const std::string& name, int64_t value, int64_t min) const;
  int64_t to_integer(const std::string& name, const std::string& text) const;
  [[noreturn]] void fail(const std::string& name, const std::string& expected) const;

  std::vector<std::string> names_;
  std::map<std::string, std::string> given_;
};

// Splits "a, (b, c), d" into "a", "(b, c)", "d".
std::vector<std::string> split_arguments(const std::string& list);
std::string without_blanks_around(const std::string& text);

}  // namespace tutti
