#pragma once

#include <string>
#include <vector>

#include "tests/tidy/rules.h"

namespace tutti {

// A text in the arguments of fail(...), UserError(...) or OperatingError(...), with its line. Texts beside
// each other are one text.
struct ErrorText {
  size_t line = 0;
  std::string text;
  bool opens = false;  // the message, or a branch of a condition: the text does not follow a `+`
};

std::vector<ErrorText> error_texts(const SourceFile& file);

// True if the message, or a clause after ": " or "; ", begins with a pronoun, and no article in the text
// before shows a noun.
bool has_bare_opening(const ErrorText& text);

// The errors of the product with a bare opening. The bound may only fall.
constexpr int kMostBareErrors = 123;

// As english_off_its_bounds: a finding if the number is above its bound, or so far below that the bound must
// fall.
Findings errors_off_their_bound(const SourceTree& tree, int bound);

}  // namespace tutti
