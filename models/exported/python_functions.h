#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace tutti::exported {

// A function of Python's on numbers, by which programs compute sizes.
using PythonFunction = std::function<c10::IValue(const std::vector<c10::IValue>& arguments)>;

// By its name in a program: "_operator.floordiv", "math.ceil", "torch.sym_max". Empty: there is none.
PythonFunction python_function(const std::string& name);

}  // namespace tutti::exported
