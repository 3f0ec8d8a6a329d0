#include "data/tokenizers/unicode/scanners.h"

#include <gtest/gtest.h>

#include "data/tokenizers/pattern.h"

namespace tutti {
namespace {

const std::string kLlama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string with_digits(const std::string& digits) {
  std::string pattern = kLlama3;
  return pattern.replace(pattern.find("{1,3}"), 5, digits);
}

std::vector<std::size_t> ends_by_pattern(const Pattern& pattern, const std::string& text) {
  std::vector<std::size_t> ends;
  pattern.for_each_match(text, [&](Pattern::Match match) { ends.push_back(match.end); });
  return ends;
}

std::vector<std::size_t> ends_by_scanner(const WordScanner& scanner, const std::string& text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size();)
    ends.push_back(at += scanner.first_word(std::string_view(text).substr(at)));
  return ends;
}

// Characters of all classes that the expressions know, and letters of contractions.
std::string hard_text(uint64_t seed) {
  static const std::vector<std::string> characters{" ",
                                                   " ",
                                                   "\n",
                                                   "\r",
                                                   "\t",
                                                   "'",
                                                   "'",
                                                   "s",
                                                   "T",
                                                   "r",
                                                   "e",
                                                   "l",
                                                   "L",
                                                   "a",
                                                   "\xc5\xbf",
                                                   "1",
                                                   "23",
                                                   "\xd9\xa3",
                                                   "\xc2\xbd",
                                                   "!",
                                                   "-",
                                                   "\xc2\xa0",
                                                   "\xe3\x80\x80",
                                                   "\xe2\x80\xa8",
                                                   "\xc3\xa9",
                                                   "\xcc\x81",
                                                   "\xe4\xba\xba",
                                                   "\xf0\x9f\x98\x80",
                                                   "\xe1\xa0\x8e",
                                                   "\xc2\x85",
                                                   "_",
                                                   "\x01"};
  std::string text;
  for (uint64_t state = seed * 2 + 1, i = 0; i < 40; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    text += characters[(state >> 33) % characters.size()];
  }
  return text;
}

TEST(WordScanner, CutsAsItsExpression) {
  for (const std::string& expression :
       {std::string(kGpt2Pattern), kLlama3, with_digits(""), with_digits("{1,2}"), with_digits("+")}) {
    const auto scanner = scanner_of(expression);
    ASSERT_TRUE(scanner) << expression;
    const Pattern pattern(expression);
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const std::string text = hard_text(seed);
      ASSERT_EQ(ends_by_scanner(*scanner, text), ends_by_pattern(pattern, text)) << expression << "\n"
                                                                                 << text;
    }
  }
}

TEST(WordScanner, IsForKnownExpressionsAlone) {
  EXPECT_FALSE(scanner_of(R"(\p{L}+)"));
  EXPECT_FALSE(scanner_of(with_digits("{1,4}")));
}

}  // namespace
}  // namespace tutti
