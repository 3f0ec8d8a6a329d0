#include "training/metrics/answers.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "data/texts/prompt_rows.h"
#include "data/tokenizers/unicode/code_points.h"
#include "data/tokenizers/unicode/words.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kWordOrder = 4, kCharacterOrder = 6;
constexpr double kPercent = 100.0, kRecallWeight = 4.0;  // beta = 2, squared

std::string_view row_of_bytes(const at::Tensor& rows, int64_t row) {
  return {reinterpret_cast<const char*>(rows.const_data_ptr<uint8_t>()) + row * rows.size(1),
          static_cast<std::size_t>(rows.size(1))};
}

std::string plain(std::string_view text) { return std::string(without_blanks_around(text)); }

using Counter = std::unordered_map<std::string, double>;

// Replaces each pair of neighbouring bytes: `before`, the first, a blank, the second, `behind`.
template <class First, class Second>
std::string with_blank_between(const std::string& line, const First& is_first, const Second& is_second,
                               const char* before, const char* behind) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i + 1 == line.size() || !is_first(line[i]) || !is_second(line[i + 1])) {
      out += line[i];
      continue;
    }
    out += before + std::string{line[i], ' ', line[i + 1]} + behind;
    ++i;
  }
  return out;
}

// Punctuation that stands alone in any case: all of ASCII's but ' , - .
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// sacrebleu's Tokenizer13a: the tokens with blanks between.
std::string tokenized_13a(std::string line) {
  static const std::vector<std::pair<std::string, std::string>> kReplaced = {
      {"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
      {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
  for (const auto& [from, to] : kReplaced) replace_all(line, from, to);
  std::string spaced;
  for (const char c : " " + line + " ")
    spaced += stands_alone(c) ? std::string{' ', c, ' '} : std::string(1, c);
  const auto is_mark = [](char c) { return c == '.' || c == ','; };
  const auto is_no_digit = [](char c) { return !is_digit(c); };
  spaced = with_blank_between(spaced, is_no_digit, is_mark, "", " ");
  spaced = with_blank_between(spaced, is_mark, is_no_digit, " ", "");
  return with_blank_between(
      spaced, is_digit, [](char c) { return c == '-'; }, "", " ");
}

// How often each sequence of `order` parts occurs.
Counter n_grams(const std::vector<std::string_view>& parts, std::size_t order) {
  Counter counts;
  for (std::size_t i = 0; i + order <= parts.size(); ++i) {
    std::string key;
    for (std::size_t n = i; n < i + order; ++n) (key += parts[n]) += '\n';  // no part has a line break
    ++counts[key];
  }
  return counts;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (const std::string_view word : words_of(text))
    for (std::size_t at = 0; at < word.size(); at += characters.back().size())
      characters.push_back(word.substr(at, code_point_at(word.data() + at).bytes));
  return characters;
}

double total(const Counter& counts) {
  double sum = 0;
  for (const auto& [key, count] : counts) sum += count;
  return sum;
}

double in_common(const Counter& first, const Counter& second) {
  double sum = 0;
  for (const auto& [key, count] : first)
    if (const auto other = second.find(key); other != second.end()) sum += std::min(count, other->second);
  return sum;
}

using ChrfCounts = std::array<double, 3 * kCharacterOrder>;

ChrfCounts chrf_counts(std::string_view answer, std::string_view reference) {
  const auto answered = characters_of(answer), expected = characters_of(reference);
  ChrfCounts counts{};
  for (std::size_t n = 0; n < kCharacterOrder; ++n) {
    const Counter ours = n_grams(answered, n + 1), theirs = n_grams(expected, n + 1);
    counts[3 * n] = theirs.empty() ? 0 : total(ours);
    counts[3 * n + 1] = total(theirs);
    counts[3 * n + 2] = in_common(ours, theirs);
  }
  return counts;
}

double chrf_of(std::span<const double> counts) {
  double precision = 0, recall = 0, orders = 0;
  for (std::size_t n = 0; n < kCharacterOrder; ++n) {
    const double ours = counts[3 * n], theirs = counts[3 * n + 1], common = counts[3 * n + 2];
    if (ours == 0 || theirs == 0) continue;
    precision += common / ours;
    recall += common / theirs;
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return kPercent * (1 + kRecallWeight) * precision * recall / (kRecallWeight * precision + recall);
}

std::string compared_text(const std::string& text, const ExactMatchOptions& options) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.data() + at);
    at += c.bytes;
    if (options.ignore_punctuation && c.value < 128 && std::ispunct(static_cast<int>(c.value))) continue;
    if (options.ignore_case && unicode().has(c.value, kLowers))
      for (const char32_t lower : unicode().lower(c.value)) append_utf8(kept, lower);
    else
      append_utf8(kept, c.value);
  }
  return kept;
}

}  // namespace

std::vector<JudgedAnswer> judged_answers(const Batch& batch, const Outputs& outputs, const TokenText* text) {
  const TensorTree* right = batch.find(kReferences);
  if (!right) throw UserError("the data have no right answers; data of kind = \"prompts\" have");
  if (!text)
    throw UserError("the model's tokens are no bytes; expected tokenizer, which says how they are text");
  const at::Tensor references = right->tensor().cpu().contiguous(), tokens = outputs.tensor().cpu();
  const TensorTree* stop = batch.find("stop");
  const std::vector<std::string> ends =
      stop ? texts_in_bytes(row_of_bytes(stop->tensor().cpu().contiguous(), 0)) : std::vector<std::string>();
  std::vector<JudgedAnswer> answers;
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    const auto* begin = tokens[row].const_data_ptr<int64_t>();
    std::string answer = as_utf8(text->decode({begin, std::find(begin, begin + tokens.size(1), -1)}));
    for (const std::string& end : ends) answer.resize(std::min(answer.find(end), answer.size()));
    JudgedAnswer& judged = answers.emplace_back(JudgedAnswer{plain(answer), {}});
    for (const std::string& reference : texts_in_bytes(row_of_bytes(references, row)))
      judged.references.push_back(plain(reference));
  }
  return answers;
}

void AnswerMetric::update(const at::Tensor&, const at::Tensor&) {
  TUTTI_ASSERT(false, "answers are measured by their whole batch");
}

void AnswerMetric::measure(Model&, const Batch& batch, const Outputs& outputs) {
  for (const JudgedAnswer& answer : judged_answers(batch, outputs, text_.get())) judge(answer);
}

void ExactMatch::count(const JudgedAnswer& answer, std::span<double> sums) const {
  const std::string text = compared_text(answer.text, options_);
  sums[0] += std::ranges::any_of(answer.references, [&](const std::string& reference) {
    return compared_text(reference, options_) == text;
  });
  sums[1] += 1;
}

void BleuScore::count(const JudgedAnswer& answer, std::span<double> sums) const {
  const std::string line = tokenized_13a(answer.text);
  const auto words = words_of(line);
  const auto length = static_cast<double>(words.size());
  double nearest = -1;
  std::array<Counter, kWordOrder> expected;
  for (const std::string& reference : answer.references) {
    const std::string tokenized = tokenized_13a(reference);
    const auto theirs = words_of(tokenized);
    const auto their_length = static_cast<double>(theirs.size());
    const double distance = std::abs(their_length - length), least = std::abs(nearest - length);
    if (nearest < 0 || distance < least || (distance == least && their_length < nearest))
      nearest = their_length;
    for (std::size_t n = 0; n < kWordOrder; ++n)
      for (const auto& [key, count] : n_grams(theirs, n + 1))
        expected[n][key] = std::max(expected[n][key], count);
  }
  for (std::size_t n = 0; n < kWordOrder; ++n) {
    const Counter ours = n_grams(words, n + 1);
    sums[n] += in_common(ours, expected[n]);
    sums[kWordOrder + n] += total(ours);
  }
  sums[2 * kWordOrder] += length;
  sums[2 * kWordOrder + 1] += nearest;
}

double BleuScore::compute() const {
  const double* equal = sums_.data();
  const double* all = equal + kWordOrder;
  const double length = sums_[2 * kWordOrder], expected = sums_[2 * kWordOrder + 1];
  if (std::all_of(equal, equal + kWordOrder, [](double count) { return count == 0; })) return 0;
  double smoothing = 1, logs = 0;
  for (std::size_t n = 0; n < kWordOrder; ++n) {
    if (all[n] == 0) return 0;  // no answer has so many words
    if (equal[n] == 0) smoothing *= 2;
    logs += std::log(kPercent * (equal[n] == 0 ? 1 / smoothing : equal[n]) / all[n]);
  }
  const double brevity = length < expected ? std::exp(1 - expected / length) : 1;
  return brevity * std::exp(logs / static_cast<double>(kWordOrder));
}

void ChrfScore::count(const JudgedAnswer& answer, std::span<double> sums) const {
  ChrfCounts best{};
  double best_score = -1;
  for (const std::string& reference : answer.references) {
    const ChrfCounts counts = chrf_counts(answer.text, reference);
    if (const double score = chrf_of(counts); score > best_score) {
      best_score = score;
      best = counts;
    }
  }
  for (std::size_t i = 0; i < best.size(); ++i) sums[i] += best[i];
}

double ChrfScore::compute() const { return chrf_of(sums_); }

}  // namespace tutti
