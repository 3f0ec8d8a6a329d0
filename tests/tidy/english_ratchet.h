#pragma once

#include <string>
#include <vector>

#include "tests/tidy/rules.h"

namespace tutti {

// The bounds of a folder. `docs` stands for README.md, CONTRIBUTING.md and the pages of docs/.
struct EnglishBound {
  std::string folder;
  int percent = 0;  // of its counted sentences, those with a bare pronoun
  int names = 0;    // without a noun
};

// The bounds of this tree. A bound may only fall.
const std::vector<EnglishBound>& english_bounds();

// Code that a user runs: not tests, benches, examples and tools.
bool is_product(const SourceFile& file);

// A finding for each number that is above its bound, or so far below (two percentage points, three names)
// that the bound must fall: the message has the number to write. A bound of 10 percent is low enough. Folders
// without a bound have the bound 0.
Findings english_off_its_bounds(const SourceTree& tree, const std::vector<EnglishBound>& bounds);

}  // namespace tutti
