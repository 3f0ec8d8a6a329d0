#include "tests/tidy/english.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace tutti {
namespace {

constexpr size_t kFewestWords = 8;

using Words = std::set<std::string>;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)); }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '\'';
}

// `code` is one word that is no pronoun.
std::string without_code(const std::string& text) {
  std::string plain;
  bool inside = false;
  for (const char c : text) {
    if (c == '`' && !inside) plain += "code";
    if (c == '`') inside = !inside;
    if (c != '`' && !inside) plain += c;
  }
  return plain;
}

// A full stop, then space and no small letter: neither "e.g. this" nor "a.cpp" ends a sentence.
bool ends_at(const std::string& text, size_t at) {
  if (text[at] != '.' && text[at] != '!' && text[at] != '?') return false;
  size_t next = at + 1;
  while (next < text.size() && (text[next] == ')' || text[next] == '"')) ++next;
  if (next >= text.size()) return true;
  if (!is_space(text[next])) return false;
  while (next < text.size() && is_space(text[next])) ++next;
  return next >= text.size() || !std::islower(static_cast<unsigned char>(text[next]));
}

// Collects lines of a paragraph, and cuts it into sentences when the paragraph ends.
class Paragraphs {
 public:
  void add(size_t line, const std::string& text) {
    if (text_.empty()) line_ = line;
    text_ += text + " ";
  }

  void end() {
    size_t begin = 0;
    for (size_t i = 0; i < text_.size(); ++i) {
      if (!ends_at(text_, i) && i + 1 < text_.size()) continue;
      const std::string sentence = text_.substr(begin, i + 1 - begin);
      if (std::any_of(sentence.begin(), sentence.end(), is_letter)) sentences.push_back({line_, sentence});
      begin = i + 1;
    }
    text_.clear();
  }

  std::vector<Sentence> sentences;

 private:
  size_t line_ = 0;
  std::string text_;
};

struct Word {
  std::string text;   // small letters
  bool ends = false;  // no word follows, or punctuation comes first
};

std::vector<Word> words_of(const std::string& sentence) {
  const std::string text = without_code(sentence);
  std::vector<Word> words;
  for (size_t i = 0; i < text.size();) {
    std::string word;
    for (; i < text.size() && is_of_word(text[i]); ++i)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
    const bool has_letters = std::any_of(word.begin(), word.end(), is_letter);
    std::string gap;
    for (; i < text.size() && !is_of_word(text[i]); ++i) gap += text[i];
    const bool ends = i >= text.size() || gap.find_first_of(".,;:!?()[]\"=|") != std::string::npos;
    if (has_letters) words.push_back({word, ends});
    if (!has_letters && ends && !words.empty() && word.empty()) words.back().ends = true;
  }
  return words;
}

// No noun begins with these: "those that fit", "this is", "one may".
bool is_followed_by_no_noun(const Word& word, const std::string& next) {
  static const Words openers{
      "that",  "which", "who",   "whose",  "is",     "are",    "was",    "were",  "has",   "have",  "had",
      "may",   "might", "must",  "can",    "cannot", "could",  "does",   "do",    "did",   "will",  "would",
      "in",    "on",    "at",    "to",     "from",   "for",    "by",     "with",  "as",    "than",  "but",
      "if",    "when",  "while", "where",  "after",  "until",  "before", "since", "so",    "too",   "also",
      "then",  "there", "not",   "no",     "only",   "per",    "into",   "over",  "under", "about", "between",
      "holds", "needs", "means", "begins", "ends",   "without"};
  return word.ends || openers.count(next) > 0;
}

bool is_bare(const Word& word, const std::string& next) {
  static const Words never_with_noun{"it",         "it's",     "itself",   "they",       "them",
                                     "themselves", "what",     "whatever", "others",     "ones",
                                     "something",  "anything", "nothing",  "everything", "one's"};
  static const Words before_noun{"one", "this", "these", "those", "both", "all", "another", "some"};
  if (never_with_noun.count(word.text) > 0) return true;
  const bool may_lead = word.text == "these" || word.text == "those" || word.text == "that";
  if (may_lead && next == "of" && !word.ends) return true;
  if (word.text == "that") return word.ends;
  return before_noun.count(word.text) > 0 && is_followed_by_no_noun(word, next);
}

// Where the comment of a line begins; npos without a comment.
size_t comment_column(const SourceFile& file, size_t line) {
  if (file.comments[line].empty()) return std::string::npos;
  return file.lines[line].size() - std::min(file.lines[line].size(), file.comments[line].size());
}

bool is_no_prose(const std::string& comment) {
  for (const char* mark : {"// namespace", "// NOLINT", "// clang-format"})
    if (comment.starts_with(mark)) return true;
  return comment.find_first_not_of("/ ") == std::string::npos;
}

bool has_code(const SourceFile& file, size_t line) {
  return !std::all_of(file.code[line].begin(), file.code[line].end(), is_space);
}

// Text of a page's line: link targets and signs of emphasis left out.
std::string plain_text(const std::string& line) {
  static const std::regex target(R"(\]\([^)]*\))");
  if (line.find("](") == std::string::npos) return line;
  return std::regex_replace(line, target, "]");
}

// Items of lists, headings, quotations, rows of tables.
bool begins_paragraph(const std::string& line) {
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const size_t digits = std::min(line.find_first_not_of("0123456789", first), line.size());
  return (first < line.size() && std::string("-*>#|").find(line[first]) != std::string::npos) ||
         (digits > first && line.compare(digits, 2, ". ") == 0);
}

// Spares most lines the regular expression, which is slow.
bool has_such_a_name(const std::string& line) {
  for (const char* part : {"one", "found", "wanted", "of_"})
    if (line.find(part) != std::string::npos) return true;
  return false;
}

// True inside the parameters or the body of a lambda whose braces close on the same line.
bool in_short_lambda(const std::string& line, size_t at) {
  static const std::regex lambda(R"(\[[^\[\]]*\]\s*\()");
  for (auto match = std::sregex_iterator(line.begin(), line.end(), lambda); match != std::sregex_iterator();
       ++match) {
    int depth = 0;
    for (size_t i = line.find('{', match->position()); i < line.size(); ++i) {
      depth += line[i] == '{' ? 1 : line[i] == '}' ? -1 : 0;
      if (depth == 0 && static_cast<size_t>(match->position()) < at && at < i) return true;
      if (depth == 0) break;
    }
  }
  return false;
}

}  // namespace

std::vector<Sentence> sentences_of_comments(const SourceFile& file) {
  Paragraphs paragraphs;
  size_t column = std::string::npos;
  for (size_t i = 0; i < file.comments.size(); ++i) {
    const size_t here = comment_column(file, i);
    const bool prose = here != std::string::npos && !is_no_prose(file.comments[i]);
    if (!prose || here != column || has_code(file, i)) paragraphs.end();
    if (prose) paragraphs.add(i + 1, file.comments[i].substr(2));
    column = prose ? here : std::string::npos;
  }
  paragraphs.end();
  return paragraphs.sentences;
}

std::vector<Sentence> sentences_of_page(const SourceFile& file) {
  Paragraphs paragraphs;
  bool fenced = false;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const bool fence = line.find("```") != std::string::npos;
    if (fence) fenced = !fenced;
    if (fence || fenced || line.empty() || begins_paragraph(line)) paragraphs.end();
    if (fence || fenced || line.rfind("    ", 0) == 0) continue;
    std::string cell;
    for (const char c : plain_text(line) + (line[0] == '|' ? "|" : "")) {
      if (c == '|' && line[0] == '|') {
        paragraphs.add(i + 1, cell);
        paragraphs.end();
        cell.clear();
      } else {
        cell += c;
      }
    }
    paragraphs.add(i + 1, cell);
  }
  paragraphs.end();
  return paragraphs.sentences;
}

bool is_counted(const Sentence& sentence) { return words_of(sentence.text).size() >= kFewestWords; }

std::string bare_pronoun(const Sentence& sentence) {
  const std::vector<Word> words = words_of(sentence.text);
  for (size_t i = 0; i < words.size(); ++i)
    if (is_bare(words[i], i + 1 < words.size() ? words[i + 1].text : "")) return words[i].text;
  return "";
}

bool opens_with_pronoun(const std::string& text) {
  const std::vector<Word> words = words_of(text);
  return words.size() > 1 && is_bare(words[0], words[1].text);
}

std::vector<EmptyName> names_without_noun(const SourceFile& file) {
  static const std::regex declared(R"((?:(\w+)[>*&]*\s+[*&]*|auto&{0,2} \[(?:\w+, )*))"
                                   R"((one|found|wanted|of_\w+)\b(?=\s*(?:[=;,({:\[\])]|$)))");
  static const Words no_types{"return", "else", "case", "throw", "delete", "new", "not", "and", "or"};
  std::vector<EmptyName> names;
  for (size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    if (!has_such_a_name(line)) continue;
    for (auto match = std::sregex_iterator(line.begin(), line.end(), declared);
         match != std::sregex_iterator(); ++match)
      if (no_types.count(match->str(1)) == 0 && !in_short_lambda(line, match->position(2)))
        names.push_back({i + 1, match->str(2)});
  }
  return names;
}

}  // namespace tutti
