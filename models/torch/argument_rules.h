#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace tutti {

// What is wrong with the arguments of a call; "" for nothing.
using ArgumentRule = std::string (*)(const torch::jit::Stack& arguments);

// The rule of an operator ("aten::ctc_loss") whose kernel trusts what it gets: it would read and write memory
// outside of its tensors, divide by zero, never end, or make a list or a text of any length. Null: there is
// none.
ArgumentRule argument_rule(const std::string& name);

}  // namespace tutti
