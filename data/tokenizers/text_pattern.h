#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizers/json_place.h"
#include "data/tokenizers/pattern.h"
#include "data/tokenizers/splitting.h"
#include "data/tokenizers/unicode/scanners.h"

namespace tutti {

// The `pattern` of Split and Replace: {"String": text} or {"Regex": expression}. Texts are found without a
// library, and so are the words of known expressions.
class TextPattern {
 public:
  // Throws UserError with the position of the error.
  explicit TextPattern(const JsonPlace& place);

  // Calls use(TextSpan) for the matches in a text, from left to right.
  template <class Use>
  void for_each_match(std::string_view text, Use use) const {
    if (scanner_) {
      for (std::size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
        bytes = scanner_->first_word(text.substr(at));
        use(TextSpan{at, at + bytes});
      }
    } else if (pattern_) {
      pattern_->for_each_match(text, [&](Pattern::Match match) { use(TextSpan{match.begin, match.end}); });
    } else {
      for (std::size_t at = text.find(text_); at != text.npos; at = text.find(text_, at + text_.size()))
        use(TextSpan{at, at + text_.size()});
    }
  }

  // Set if the pattern matches all of each text.
  const std::optional<WordScanner>& scanner() const { return scanner_; }

 private:
  std::optional<WordScanner> scanner_;
  std::optional<Pattern> pattern_;
  std::string text_;
};

}  // namespace tutti
