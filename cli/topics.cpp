#include "cli/topics.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "recipe/dotted_path.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kShown = 14, kWordOfATopic = 5;
constexpr int kOfName = 8, kOfSynonym = 7, kOfText = 3, kOfWholeName = 6, kOfSection = 2;

// Other words for a topic: words of names in the catalogs.
const std::map<std::string, Words>& synonyms() {
  static const std::map<std::string, Words> words = {
      {"accumulation", {"grad_accum"}},
      {"activation", {"activation_checkpointing"}},
      {"amp", {"precision"}},
      {"average", {"ema", "swa"}},
      {"bf16", {"precision", "param_dtype"}},
      {"clip", {"gradient_clipping"}},
      {"clipping", {"gradient_clipping"}},
      {"cuda", {"device"}},
      {"dataloader", {"data.train", "num_workers"}},
      {"dataset", {"data.train", "data.eval"}},
      {"ddp", {"collectives", "sharding"}},
      {"duration", {"max_duration"}},
      {"epoch", {"max_duration"}},
      {"fp16", {"precision", "init_scale"}},
      {"fsdp", {"sharding"}},
      {"gpu", {"device"}},
      {"half", {"precision"}},
      {"iteration", {"max_duration"}},
      {"logging", {"loggers", "progress_bar"}},
      {"loader", {"data.train", "num_workers"}},
      {"memory", {"grad_accum", "activation_checkpointing", "memory_budget_mb", "cache_mb"}},
      {"microbatch", {"grad_accum"}},
      {"mixed", {"precision"}},
      {"oom", {"grad_accum", "activation_checkpointing", "memory_budget_mb"}},
      {"overfitting", {"early_stopper", "weight_decay", "label_smoothing"}},
      {"patience", {"early_stopper"}},
      {"rate", {"lr"}},
      {"recompute", {"activation_checkpointing"}},
      {"regularization", {"weight_decay", "label_smoothing", "stochastic_depth"}},
      {"reproducible", {"seed", "deterministic_mode"}},
      {"resume", {"autoresume", "load_path", "checkpoint"}},
      {"save", {"checkpoint"}},
      {"schedule", {"scheduler"}},
      {"steps", {"max_duration"}},
      {"stopping", {"early_stopper", "threshold_stopper"}},
      {"test", {"eval"}},
      {"thread", {"threads", "num_workers"}},
      {"validation", {"eval", "eval_interval"}},
      {"worker", {"num_workers"}},
      {"zero", {"sharding"}}};
  return words;
}

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

bool has_word(const Words& words, const std::string& wanted, WordMatch match) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return singular(word) == singular(wanted) || (match == WordMatch::kBegun && begins_alike(word, wanted));
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
  std::vector<Subject> found;
  std::set<std::string> names;
  const auto add = [&](const std::string& section, const std::string& own, const std::string& doc,
                       const Words& aliases, int bonus) {
    const std::string name = section.empty() ? own : section + '.' + own;
    if (own.empty() || !names.insert(name).second) return;
    Words words = split_words(own);
    for (const auto& alias : aliases)
      for (auto& word : split_words(alias)) words.push_back(std::move(word));
    found.push_back({name, own, doc, std::move(words), split_words(doc), bonus});
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
  return found;
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

// The sum over the topic's words, each of which must be found; 0 if not.
int score_of(const Subject& subject, const Words& topic, WordMatch match) {
  int sum = subject.bonus;
  for (const auto& word : topic) {
    const int score = score_of(subject, word, match);
    if (score == 0) return 0;
    sum += score;
  }
  return sum + (subject.name_words == topic ? kOfWholeName : 0);
}

std::string line_of(const Subject& subject, std::size_t width) {
  return subject.name + std::string(width - subject.name.size() + 2, ' ') + subject.doc + '\n';
}

}  // namespace

std::vector<std::string> synonym_words() {
  std::vector<std::string> words;
  for (const auto& [word, names] : synonyms()) words.push_back(word);
  return words;
}

std::vector<std::string> topic_words(std::span<const Catalog> catalogs) {
  std::vector<std::string> words = synonym_words();
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
  std::vector<std::pair<int, Subject>> found;
  for (auto& subject : subjects(catalogs))
    if (const int score = score_of(subject, words, match)) found.emplace_back(score, std::move(subject));
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::size_t left_out = found.size() - std::min(found.size(), kShown);
  found.resize(found.size() - left_out);
  std::size_t width = 0;
  for (const auto& [score, subject] : found) width = std::max(width, subject.name.size());
  std::string out;
  for (const auto& [score, subject] : found) out += line_of(subject, width);
  if (left_out > 0) out += "... and " + std::to_string(left_out) + " more\n";
  return out.empty() ? "" : out + "\n`tutti explain NAME` says more of each.\n";
}

}  // namespace tutti
