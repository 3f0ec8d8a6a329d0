#include "tests/tidy/english_ratchet.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/tidy/english.h"

namespace tutti {
namespace {

constexpr int kSlackPercent = 1;
constexpr int kSlackNames = 2;
constexpr int kGoodPercent = 10;  // as in the headers of leveldb; a bound need not fall further

struct Count {
  int sentences = 0;
  Findings bare;   // a line a sentence
  Findings names;  // a line a name

  int percent() const {  // rounded up
    const int bare_sentences = static_cast<int>(bare.size());
    return sentences == 0 ? 0 : (100 * bare_sentences + sentences - 1) / sentences;
  }
};

bool is_page(const SourceFile& file) {
  return file.folder() == "docs" || file.path == "README.md" || file.path == "CONTRIBUTING.md";
}

void add_sentences(const SourceFile& file, const std::vector<Sentence>& sentences, Count& count) {
  for (const Sentence& sentence : sentences) {
    if (!is_counted(sentence)) continue;
    ++count.sentences;
    const std::string pronoun = bare_pronoun(sentence);
    if (!pronoun.empty())
      count.bare.push_back(finding(file, sentence.line, "'" + pronoun + "':" + sentence.text));
  }
}

std::map<std::string, Count> count_by_folder(const SourceTree& tree) {
  std::map<std::string, Count> counts;
  for (const SourceFile& file : tree) {
    if (is_page(file)) add_sentences(file, sentences_of_page(file), counts["docs"]);
    if (!is_product(file)) continue;
    Count& count = counts[file.folder()];
    if (file.is_header()) add_sentences(file, sentences_of_comments(file), count);
    for (const EmptyName& name : names_without_noun(file))
      count.names.push_back(finding(file, name.line, "'" + name.name + "' is no noun"));
  }
  return counts;
}

std::string lines_of(const Findings& findings) {
  std::string text;
  for (const std::string& line : findings) text += "\n  " + line;
  return text;
}

std::string in_table(const std::string& folder, const std::string& column, int number) {
  return "tests/tidy/english_ratchet.cpp: " + folder + ": " + column + " " + std::to_string(number);
}

void compare(const std::string& folder, const Count& count, const EnglishBound& bound, Findings& findings) {
  const int names = static_cast<int>(count.names.size());
  if (count.percent() > bound.percent)
    findings.push_back(in_table(folder, "percent", bound.percent) + ", but of " +
                       std::to_string(count.sentences) + " sentences " + std::to_string(count.bare.size()) +
                       " have a bare pronoun: name the noun" + lines_of(count.bare));
  const int enough = std::max(count.percent(), kGoodPercent);
  if (enough < bound.percent - kSlackPercent)
    findings.push_back(in_table(folder, "percent", bound.percent) + " is too much now; write " +
                       std::to_string(enough));
  if (names > bound.names)
    findings.push_back(in_table(folder, "names", bound.names) + ", but there are " + std::to_string(names) +
                       lines_of(count.names));
  if (names < bound.names - kSlackNames || (names == 0 && bound.names > 0))
    findings.push_back(in_table(folder, "names", bound.names) + " is too much now; write " +
                       std::to_string(names));
}

}  // namespace

const std::vector<EnglishBound>& english_bounds() {
  static const std::vector<EnglishBound> bounds{
      {"actors", 10, 0},      {"algorithms", 10, 0}, {"analysis", 10, 0}, {"cli", 10, 0},
      {"collectives", 10, 0}, {"commands", 10, 0},   {"data", 10, 0},     {"docs", 12, 0},
      {"io", 10, 0},          {"job", 10, 0},        {"models", 10, 4},   {"recipe", 10, 0},
      {"runtime", 10, 0},     {"sharding", 10, 0},   {"sim", 10, 0},      {"tensors", 10, 0},
      {"training", 10, 0},
  };
  return bounds;
}

bool is_product(const SourceFile& file) {
  static const std::set<std::string> others{"", "tests", "bench", "examples", "tools", "cmake", ".ci"};
  return file.is_cpp() && others.count(file.folder()) == 0;
}

Findings english_off_its_bounds(const SourceTree& tree, const std::vector<EnglishBound>& bounds) {
  std::map<std::string, EnglishBound> by_folder;
  for (const EnglishBound& bound : bounds) by_folder[bound.folder] = bound;
  std::map<std::string, Count> counts = count_by_folder(tree);
  for (const EnglishBound& bound : bounds) counts[bound.folder];
  Findings findings;
  for (const auto& [folder, count] : counts) compare(folder, count, by_folder[folder], findings);
  return findings;
}

}  // namespace tutti
