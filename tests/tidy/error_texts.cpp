#include "tests/tidy/error_texts.h"

#include <cctype>
#include <regex>

#include "tests/tidy/english.h"
#include "tests/tidy/english_ratchet.h"

namespace tutti {
namespace {

constexpr int kSlackErrors = 4;

// "\"a\"'b'" -> a, b: the texts of a line, with quotes left out.
std::vector<std::string> literals_of(const std::string& strings) {
  std::vector<std::string> literals;
  for (size_t begin = 0; begin < strings.size();) {
    size_t end = begin + 1;
    while (end < strings.size() && strings[end] != strings[begin]) end += strings[end] == '\\' ? 2 : 1;
    literals.push_back(strings.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return literals;
}

// Walks the code from the opening bracket of a call to its end, and collects texts.
class CallReader {
 public:
  CallReader(const SourceFile& file, size_t line) : file_(file), line_(line) {}

  std::vector<ErrorText> read(size_t column) {
    for (; line_ < file_.code.size() && !done_; ++line_, column = 0) read_line(column);
    return texts_;
  }

 private:
  void read_line(size_t column) {
    const std::string& code = file_.code[line_];
    const std::vector<std::string> literals = literals_of(file_.strings[line_]);
    size_t quotes = 0;
    for (size_t i = 0; i < code.size() && !done_; ++i) {
      if (code[i] == '"') ++quotes;
      if (i < column) continue;
      if (code[i] != '"') {
        take(code[i]);
      } else if (quotes % 2 == 1 && quotes / 2 < literals.size()) {
        add(literals[quotes / 2]);
      }
    }
  }

  void take(char c) {
    if (std::isspace(static_cast<unsigned char>(c))) return;
    depth_ += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
    done_ = depth_ == 0;
    before_ = c;
  }

  void add(const std::string& literal) {
    const bool continues = before_ == '"';
    if (continues) texts_.back().text += literal;
    if (!continues) texts_.push_back({line_ + 1, literal, before_ != '+'});
    before_ = '"';
  }

  const SourceFile& file_;
  size_t line_;
  std::vector<ErrorText> texts_;
  int depth_ = 0;
  char before_ = ' ';
  bool done_ = false;
};

}  // namespace

std::vector<ErrorText> error_texts(const SourceFile& file) {
  static const std::regex call(R"(\b(?:fail|fail_key|WrongKey|[A-Za-z]*Error)(?=[({]))");
  std::vector<ErrorText> texts;
  for (size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    if (line.find("fail") == std::string::npos && line.find("Error") == std::string::npos) continue;
    for (auto match = std::sregex_iterator(line.begin(), line.end(), call); match != std::sregex_iterator();
         ++match)
      for (const ErrorText& text : CallReader(file, i).read(match->position() + match->length()))
        texts.push_back(text);
  }
  return texts;
}

bool has_bare_opening(const ErrorText& text) {
  static const std::regex article(R"(\b(?:a|an|the|no|each|every|its)\b)", std::regex::icase);
  const auto is_bare_at = [&](size_t at) {
    return opens_with_pronoun(text.text.substr(at)) && !std::regex_search(text.text.substr(0, at), article);
  };
  if (text.opens && is_bare_at(0)) return true;
  for (size_t at = 0; (at = text.text.find_first_of(":;", at)) != std::string::npos; ++at)
    if (text.text.compare(at + 1, 1, " ") == 0 && is_bare_at(at + 2)) return true;
  return false;
}

Findings errors_off_their_bound(const SourceTree& tree, int bound) {
  Findings bare;
  for (const SourceFile& file : tree) {
    if (!is_product(file)) continue;
    for (const ErrorText& text : error_texts(file))
      if (has_bare_opening(text)) bare.push_back(finding(file, text.line, "'" + text.text + "'"));
  }
  const int count = static_cast<int>(bare.size());
  const std::string place = "tests/tidy/error_texts.h: kMostBareErrors = " + std::to_string(bound);
  if (count < bound - kSlackErrors) return {place + " is too much now; write " + std::to_string(count)};
  if (count <= bound) return {};
  Findings findings{place + ", but " + std::to_string(count) + " errors begin with a pronoun: name the noun"};
  findings.insert(findings.end(), bare.begin(), bare.end());
  return findings;
}

}  // namespace tutti
