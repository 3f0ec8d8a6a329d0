#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tutti {

// A change that makes examples/digits.toml wrong, and the error.
struct Mistake {
  std::string name;
  std::string old_text, new_text;
  std::string named;  // text in the line that the message names; "" = new_text
  std::vector<std::string> words;
  std::vector<int> ranks = {1, 2, 3};
  bool has_line = true;  // the message names that very line
};

inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

std::vector<Mistake> mistakes();

}  // namespace tutti
