#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/torch/argument_rules.h"

namespace tutti {

// The operators of libtorch that a program in a file may call: those that compute tensors and numbers from
// their arguments. libtorch finds all others by name too: operators that write files, that read and write
// memory outside of their tensors, or that change the state of the process.

// "aten::add", without its overload.
bool is_known_operator(const std::string& name);

// Throws UserError. `place`: the operator, and where it is called.
[[noreturn]] void refuse_operator(const std::string& place);

// Throws UserError for an operator that is not known.
void require_known(const c10::FunctionSchema& schema, const std::string& place);

// The arguments of an operator that a call may not have. Types, layouts and memory formats are numbers, by
// which libtorch finds functions without a look whether there are any. An argument `out` is resized. Some
// operators have rules of their own (models/torch/argument_rules.h).
class CheckedArguments {
 public:
  explicit CheckedArguments(const c10::FunctionSchema& schema);
  // What is wrong with them; "" for nothing.
  std::string problem(const torch::jit::Stack& arguments) const;

 private:
  using Check = bool (*)(int64_t number);
  bool has_out_;
  ArgumentRule rule_;
  std::vector<std::pair<std::size_t, Check>> checked_;
};

}  // namespace tutti
