#include "cli/topics.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "recipe/dotted_path.h"
#include "recipe/glossary.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {

extern const char kSynonyms[];

namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kShown = 14, kWordOfATopic = 5;
constexpr int kOfName = 8, kOfSynonym = 7, kOfText = 3, kOfWholeName = 6, kOfSection = 2;

// "[data.train]" -> data, train; "MulticlassAccuracy" -> multiclass, accuracy
Words split_words(const std::string& text) {
  Words words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, ""));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool begins = std::isupper(c) && i > 0 && std::islower(static_cast<unsigned char>(text[i - 1]));
    if (!std::isalnum(c) || begins) finish();
    if (std::isalnum(c)) word += static_cast<char>(std::tolower(c));
  }
  finish();
  return words;
}

std::string singular(const std::string& word) {
  const bool plural = word.size() > 3 && word.ends_with('s') && !word.ends_with("ss");
  return plural ? word.substr(0, word.size() - 1) : word;
}

// Most of the longer word must be the same.
bool begins_alike(const std::string& a, const std::string& b) {
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  return same >= 4 && 5 * same >= 3 * std::max(a.size(), b.size());
}

bool has_word(const Words& words, const std::string& asked, WordMatch match) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return singular(word) == singular(asked) || (match == WordMatch::kBegun && begins_alike(word, asked));
  });
}

// A section, kind or key that a topic may be about.
struct Subject {
  std::string name;  // as `explain` takes it
  std::string own;   // without its section
  std::string doc;
  Words name_words, doc_words;
  int bonus = 0;
};

std::vector<Subject> subjects(std::span<const Catalog> catalogs) {
  std::vector<Subject> all;
  std::set<std::string> names;
  const auto add = [&](const std::string& section, const std::string& own, const std::string& doc,
                       const Words& aliases, int bonus) {
    const std::string name = section.empty() ? own : section + '.' + own;
    if (own.empty() || !names.insert(name).second) return;
    Words words = split_words(own);
    for (const auto& alias : aliases)
      for (auto& word : split_words(alias)) words.push_back(std::move(word));
    all.push_back({name, own, doc, std::move(words), split_words(doc), bonus});
  };
  const auto add_keys = [&](const Catalog& catalog, const std::vector<Key>& keys) {
    for (const auto& key : keys)
      if (!key.refused()) add(catalog.section, key.name, key.doc, key.aliases, 0);
  };
  for (const auto& catalog : catalogs) {
    add("", catalog.section, catalog.doc, {catalog.noun}, kOfSection);
    for (const auto& entry : catalog.entries) {
      add("", entry.name, entry.doc, {entry.origin.composer}, 0);
      add_keys(catalog, entry.keys);
    }
    add_keys(catalog, catalog.keys);
  }
  return all;
}

// "eval" stands for the section data.eval, too.
bool stands_for(const Words& names, const Subject& subject) {
  const std::string last = last_part(subject.own);
  return std::ranges::count(names, last) > 0 || std::ranges::count(names, subject.own) > 0;
}

int score_of(const Subject& subject, const std::string& word, WordMatch match) {
  int score = 0;
  if (has_word(subject.name_words, word, match)) score = kOfName;
  const auto known = synonyms().find(word);
  const auto also = known == synonyms().end() ? synonyms().find(singular(word)) : known;
  if (also != synonyms().end() && stands_for(also->second, subject)) score = std::max(score, kOfSynonym);
  if (has_word(subject.doc_words, word, match)) score += kOfText;
  return score;
}

// The sum over the topic's words; 0 if a word scores 0.
int score_of(const Subject& subject, const Words& topic, WordMatch match) {
  int sum = subject.bonus;
  for (const auto& word : topic) {
    const int score = score_of(subject, word, match);
    if (score == 0) return 0;
    sum += score;
  }
  return sum + (subject.name_words == topic ? kOfWholeName : 0);
}

std::string subject_line(const Subject& subject, std::size_t width) {
  return subject.name + std::string(width - subject.name.size() + 2, ' ') + subject.doc + '\n';
}

}  // namespace

const std::map<std::string, Words>& synonyms() {
  static const std::map<std::string, Words> all = [] {
    std::map<std::string, Words> words;
    for (const GlossaryEntry& entry : read_glossary("cli/synonyms.txt", kSynonyms))
      for (const std::string& word : entry.names) {
        const bool is_new = words.emplace(word, entry.places).second;
        TUTTI_ASSERT(is_new, "cli/synonyms.txt has " + word + " twice");
      }
    return words;
  }();
  return all;
}

std::vector<std::string> topic_words(std::span<const Catalog> catalogs) {
  Words words;
  for (const auto& [word, names] : synonyms()) words.push_back(word);
  for (const auto& subject : subjects(catalogs))
    for (const auto& word : subject.name_words)
      if (word.size() >= kWordOfATopic) words.push_back(word);
  return words;
}

std::string see_also(std::span<const Catalog> catalogs, const std::string& word) {
  const auto known = synonyms().find(lower_case(word));
  if (known == synonyms().end()) return "";
  std::string text;
  for (const auto& subject : subjects(catalogs))
    if (stands_for(known->second, subject)) text += (text.empty() ? "See also " : ", ") + subject.name;
  return text.empty() ? "" : text + ".\n";
}

std::string topic_text(std::span<const Catalog> catalogs, const std::string& topic, WordMatch match) {
  static const Words ignored = {"the", "a", "of", "to", "how", "in", "for", "do", "i"};
  Words words = split_words(lower_case(topic));
  std::erase_if(words, [](const std::string& word) { return std::ranges::count(ignored, word) > 0; });
  if (words.empty()) return "";
  std::vector<std::pair<int, Subject>> scored;
  for (auto& subject : subjects(catalogs))
    if (const int score = score_of(subject, words, match)) scored.emplace_back(score, std::move(subject));
  std::ranges::stable_sort(scored, [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::size_t left_out = scored.size() - std::min(scored.size(), kShown);
  scored.resize(scored.size() - left_out);
  std::size_t width = 0;
  for (const auto& [score, subject] : scored) width = std::max(width, subject.name.size());
  std::string out;
  for (const auto& [score, subject] : scored) out += subject_line(subject, width);
  if (left_out > 0) out += "... and " + std::to_string(left_out) + " more\n";
  return out.empty() ? "" : out + "\n`tutti explain NAME` says more of each.\n";
}

}  // namespace tutti
