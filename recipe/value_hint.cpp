#include "recipe/value_hint.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/nearest_name.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Values = std::vector<Setting::Value>;
using Words = std::vector<std::pair<const char*, std::vector<const char*>>>;

// PyTorch's and Lightning's words for values of ours.
const Words kOtherWords = {{"fp32", {"float32", "float", "32", "32-true", "full"}},
                           {"amp_fp16", {"float16", "half", "16", "mixed", "mixed_fp16"}},
                           {"amp_bf16", {"bfloat16"}},
                           {"gpu", {"cuda"}},
                           {"cpu", {"mps"}}};

const Words kUnits = {{"ep", {"e", "ep", "eps", "epoch", "epochs"}},
                      {"ba",
                       {"b", "ba", "batch", "batches", "step", "steps", "it", "its", "iters", "iteration",
                        "iterations", "update", "updates"}},
                      {"sp", {"sp", "sample", "samples"}},
                      {"tok", {"tok", "toks", "token", "tokens"}},
                      {"dur", {"dur", "duration"}},
                      {"s", {"s", "sec", "secs", "second", "seconds"}},
                      {"m", {"m", "min", "mins", "minute", "minutes"}},
                      {"h", {"h", "hr", "hrs", "hour", "hours"}}};

// The name of ours for another word; "" = none.
std::string ours(const Words& words, const std::string& word) {
  for (const auto& [name, others] : words)
    for (const char* other : others)
      if (lower_case(word) == other) return name;
  return "";
}

std::string inner_text(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

struct Quantity {
  double number;
  std::string unit;  // as written, lower case; may be ""
};

std::optional<Quantity> quantity(const std::string& text) {
  const std::string plain = lower_case(inner_text(text));
  Quantity read{};
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), read.number);
  if (error != std::errc() || !std::isfinite(read.number)) return std::nullopt;
  read.unit = inner_text(std::string(end, plain.data() + plain.size()));
  return read;
}

constexpr double kMostWhole = 1e15;

bool is_whole(double number) { return number == std::trunc(number) && std::abs(number) < kMostWhole; }

std::string shortest_digits(double number) {
  if (is_whole(number)) return std::to_string(static_cast<int64_t>(number));
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// "1h30m" of 5400 seconds, "90000sec" from a day on.
std::string clock_text(double seconds) {
  const double whole = std::round(seconds);
  const auto count = static_cast<int64_t>(whole);
  if (whole >= 86400 || count <= 0) return shortest_digits(whole) + "sec";
  std::string text;
  for (const auto& [part, unit] :
       {std::pair<int64_t, char>{count / 3600, 'h'}, {count / 60 % 60, 'm'}, {count % 60, 's'}})
    if (part > 0) text += std::to_string(part) + unit;
  return text;
}

void add_times(const Quantity& time, Values& values) {
  if (time.unit.empty()) {
    for (const char* unit : {"ep", "sec"}) values.emplace_back(shortest_digits(time.number) + unit);
    return;
  }
  const std::string unit = ours(kUnits, time.unit);
  if (unit == "s" || unit == "m" || unit == "h") {
    const double seconds = time.number * (unit == "s" ? 1 : unit == "m" ? 60 : 3600);
    values.emplace_back(unit == "s" ? shortest_digits(seconds) + "sec" : clock_text(seconds));
  } else if (!unit.empty()) {
    values.emplace_back(shortest_digits(time.number) + unit);
  }
}

bool is_time(const Key& key) { return key.type == KeyType::kTime || key.type == KeyType::kTimes; }

void add_of_number(const Key& key, double number, Values& values) {
  if (is_time(key)) add_times({number, ""}, values);
  if (is_whole(number)) values.emplace_back(static_cast<int64_t>(number));
  values.emplace_back(number);
}

void add_of_text(const Key& key, const std::string& text, Values& values) {
  const std::string lower = lower_case(inner_text(text));
  if (lower == "true" || lower == "yes" || lower == "on") values.emplace_back(true);
  if (lower == "false" || lower == "no" || lower == "off") values.emplace_back(false);
  if (const auto read = quantity(text)) {
    if (read->unit.empty()) add_of_number(key, read->number, values);
    if (is_time(key)) add_times(*read, values);
    if (read->unit == "%" && is_time(key)) values.emplace_back(shortest_digits(read->number / 100) + "dur");
  }
  std::vector<std::string> known = key.choices;
  known.insert(known.end(), key.words.begin(), key.words.end());
  for (const auto& [name, choice] : key.synonyms) known.push_back(name);
  values.emplace_back(ours(kOtherWords, text));
  values.emplace_back(nearest_name(text, known));
}

Values guesses(const Key& key, const Setting& given) {
  Values values;
  if (given.is_text()) {
    add_of_text(key, given.text(), values);
  } else if (const bool* flag = std::get_if<bool>(&given.value)) {
    values.emplace_back(std::string(*flag ? "true" : "false"));
  } else if (given.is_integer() || std::holds_alternative<double>(given.value)) {
    if (given.number() == 0 || given.number() == 1) values.emplace_back(given.number() == 1);
    add_of_number(key, given.number(), values);
    if (key.type == KeyType::kText) values.emplace_back(shortest_digits(given.number()));
  }
  const bool is_one = !given.is_array() && !given.is_table() && key.type != KeyType::kTables;
  if (is_one) values.emplace_back(Setting::Array{given});
  return values;
}

}  // namespace

std::string value_hint(const Key& key, const Setting& given,
                       const std::function<bool(const Setting&)>& accepts) {
  for (Setting::Value& value : guesses(key, given)) {
    const auto* text = std::get_if<std::string>(&value);
    if (text && text->empty()) continue;
    const Setting guess(std::move(value), given.path, given.position);
    if (guess.toml() != given.toml() && accepts(guess)) return guess.toml();
  }
  return "";
}

}  // namespace tutti
