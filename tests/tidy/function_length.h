#pragma once

#include <string>
#include <vector>

namespace tutti {

// A function body of C++ code: lines [first, last], counted from 1, from its signature to its closing brace.
struct FunctionSpan {
  int first = 0;
  int last = 0;
  int lines() const { return last - first + 1; }
};

// The functions of a file, lambdas inside them not counted apart; `code` is SourceFile::code.
std::vector<FunctionSpan> find_functions(const std::vector<std::string>& code);

}  // namespace tutti
