#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// The operators of libtorch that a program in a file may call: those that compute tensors and numbers from
// their arguments. libtorch finds all others by name too: operators that write files, that read and write
// memory outside of their tensors, or that change the state of the process.

// "aten::add", without its overload.
bool is_known_operator(const std::string& name);

// Throws UserError. `place`: the operator, and where it is called.
[[noreturn]] void refuse_operator(const std::string& place);

// Throws UserError for an operator that is not known, or that writes to an argument `out`, which it resizes.
void require_known(const c10::FunctionSchema& schema, const std::string& place);

// The arguments of an operator that are numbers of types, layouts and memory formats. libtorch finds
// functions by these numbers, and does not look whether there are any.
class KindArguments {
 public:
  explicit KindArguments(const c10::FunctionSchema& schema);
  // Which argument is a number that stands for nothing; "" if none is.
  std::string problem(const torch::jit::Stack& arguments) const;

 private:
  using Check = bool (*)(int64_t number);
  std::vector<std::pair<std::size_t, Check>> checked_;
};

}  // namespace tutti
