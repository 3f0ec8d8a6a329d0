#pragma once

#include <memory>
#include <string>
#include <string_view>

struct re_pattern_buffer;  // of Oniguruma

namespace tutti {

// A regular expression in Oniguruma's syntax. `tokenizers` uses the same library, so that classes, flags and
// backtracking are the same; PCRE2 and ICU differ (\h, (?m), ^, X{n,m}+). Code points that Unicode got after
// the version of the library here are of no class. Common patterns do without the library: scanners.h.
// Immutable; threads may share it.
class Pattern {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
  };

  // Throws UserError without a place, if the expression is wrong.
  explicit Pattern(const std::string& expression);
  // The pattern of this very text.
  static Pattern literal(const std::string& text);

  // Calls use(Match) for the matches in a text, from left to right. Empty matches count, but not directly
  // behind another match. Throws UserError if the library gives up after too much backtracking.
  template <class Use>
  void for_each_match(std::string_view text, Use use) const {
    Search search;
    while (next_match(text, search)) use(search.match);
  }

 private:
  struct Search {
    Match match;
    std::size_t at = 0;
    bool has_match = false;
  };
  bool next_match(std::string_view text, Search& search) const;
  bool match_from(std::string_view text, std::size_t at, Match& match) const;

  std::shared_ptr<re_pattern_buffer> regex_;
};

}  // namespace tutti
