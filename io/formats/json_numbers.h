#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

// The members of a JSON object that are numbers, in the order written; "nan", "inf" and "-inf", as json_line
// writes them, are numbers too. `valid` is false for a text that is no JSON object.
struct JsonNumbers {
  bool valid = false;
  std::vector<std::pair<std::string, double>> members;
};
JsonNumbers json_numbers_of(std::string_view line);

}  // namespace tutti
