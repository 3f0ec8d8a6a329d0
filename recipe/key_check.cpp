#include "recipe/key_check.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "recipe/hints.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr double kMaxTime = 1e15;  // in any unit; fits int64

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A value, or one of a list, that is not what its key expects.
struct Rejected {
  const Setting& value;
};

[[noreturn]] void reject(const Setting& given) { throw Rejected{given}; }

Setting with_value(const Setting& given, Setting::Value value) {
  return Setting(std::move(value), given.path, given.position);
}

Setting checked_number(const Key& key, const Setting& given, bool whole) {
  const bool is_double = std::holds_alternative<double>(given.value);
  if (!given.is_integer() && (whole || !is_double)) reject(given);
  if (!std::isfinite(given.number())) given.fail("expected a finite number");
  if (!key.range.holds(given.number())) reject(given);
  return whole ? given : with_value(given, given.number());
}

Setting checked_text(const Setting& given) {
  if (!given.is_text() || given.text().find('\0') != std::string::npos) reject(given);
  if (!is_utf8(given.text())) given.fail("expected a text in UTF-8");
  return given;
}

// "" would be the folder of the recipe.
Setting checked_path(const Setting& given) {
  Setting path = checked_text(given);
  if (path.text().empty()) given.fail("expected a path, not an empty text");
  return path;
}

// The number of a time, in Python's syntax, with underscores between digits; not negative.
std::optional<double> time_number(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] != '_' || !between) digits += text[i];
  }
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool all = error == std::errc() && end == digits.data() + digits.size();
  return all && std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

// Normalises a time as Composer does: lower case, no spaces around the number, no plus sign.
std::string plain_time(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t next = std::min(text.find_first_not_of(' ', i), text.size());
    const bool within = !plain.empty() && next < text.size() && is_digit(text[next]);
    if (text[i] != ' ' || within)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  }
  if (plain.starts_with('+')) plain.erase(0, 1);
  return plain;
}

Setting checked_time(const Key& key, const Setting& given) {
  const bool is_epochs = given.is_integer() && given.integer() >= 0;
  if (!is_epochs && !given.is_text()) reject(given);
  const std::string text = is_epochs ? std::to_string(given.integer()) + "ep" : plain_time(given.text());
  const std::string unit = time_unit(text);
  if (unit.empty() || (!key.units.empty() && !contains(key.units, unit))) reject(given);
  const auto number = time_number(std::string_view(text).substr(0, text.size() - unit.size()));
  if (number && !key.range.holds(*number)) reject(given);
  if (number && *number > kMaxTime) given.fail("expected a shorter time; this one is never reached");
  return with_value(given, text);
}

template <class CheckItem>
Setting checked_list(const Setting& given, CheckItem check_item) {
  if (!given.is_array()) reject(given);
  Setting::Array items;
  for (const auto& item : given.array()) items.push_back(check_item(item));
  return with_value(given, std::move(items));
}

// Checks pairs of a step and the value from this step on; steps ascend from 0.
Setting checked_steps(const Key& key, const Setting& given) {
  if (given.array().empty()) reject(given);
  int64_t least = 0;
  return checked_list(given, [&](const Setting& pair) {
    if (!pair.is_array() || pair.array().size() != 2 || !pair.array()[0].is_integer()) reject(given);
    const int64_t step = pair.array()[0].integer();
    if (least == 0 ? step != 0 : step < least) reject(given);
    least = step + 1;
    checked_number(key, pair.array()[1], true);
    return pair;
  });
}

Setting checked_boolean_integer_or_texts(const Key& key, const Setting& given) {
  if (std::holds_alternative<bool>(given.value)) return given;
  if (!given.is_array()) return checked_number(key, given, true);
  return checked_list(given, [&](const Setting& item) { return checked_text(item); });
}

// Errors name the member.
Setting checked_named_texts(const Setting& given) {
  if (given.table().empty()) reject(given);
  for (const auto& [name, member] : given.table()) {
    if (!member.is_text()) member.fail("expected a text");
    checked_text(member);
  }
  return given;
}

Setting checked_kind(const Key& key, const Setting& given) {
  Setting kind = checked_text(given);
  if (!key.tables->find_entry(kind.text())) reject(given);
  return kind;
}

Setting checked_type(const Key& key, const Setting& given) {
  switch (key.type) {
    case KeyType::kBoolean:
      if (!std::holds_alternative<bool>(given.value)) reject(given);
      return given;
    case KeyType::kInteger:
      return checked_number(key, given, true);
    case KeyType::kNumber:
      return checked_number(key, given, false);
    case KeyType::kText:
      return checked_text(given);
    case KeyType::kPath:
      return key.tables && given.is_table() ? given : checked_path(given);
    case KeyType::kTime:
      return checked_time(key, given);
    case KeyType::kIntegers:
      return checked_list(given, [&](const Setting& item) { return checked_number(key, item, true); });
    case KeyType::kNumbers:
      return checked_list(given, [&](const Setting& item) { return checked_number(key, item, false); });
    case KeyType::kTexts:
      return checked_list(given, [&](const Setting& item) { return checked_text(item); });
    case KeyType::kTimes:
      return checked_list(given, [&](const Setting& item) { return checked_time(key, item); });
    case KeyType::kNumberOrNumbers:
      if (!given.is_array()) return checked_number(key, given, false);
      return checked_list(given, [&](const Setting& item) { return checked_number(key, item, false); });
    case KeyType::kIntegerOrIntegers:
      if (!given.is_array()) return checked_number(key, given, true);
      return checked_list(given, [&](const Setting& item) { return checked_number(key, item, true); });
    case KeyType::kIntegerOrSteps:
      return given.is_array() ? checked_steps(key, given) : checked_number(key, given, true);
    case KeyType::kBooleanIntegerOrTexts:
      return checked_boolean_integer_or_texts(key, given);
    case KeyType::kNamedTexts:
      if (!given.is_table()) reject(given);
      return checked_named_texts(given);
    case KeyType::kTextOrTexts:
      if (!given.is_array()) return checked_text(given);
      return checked_list(given, [&](const Setting& item) { return checked_text(item); });
    case KeyType::kTextsOrNamedTexts:
      return given.is_table() ? checked_named_texts(given)
                              : checked_list(given, [&](const Setting& item) { return checked_text(item); });
    case KeyType::kTables:
      if (!given.is_array() || given.array().empty()) reject(given);
      return given;
    case KeyType::kTable:
      if (!given.is_table()) reject(given);
      return given;
    case KeyType::kKindOrTable:
      return given.is_table() ? given : checked_kind(key, given);
    case KeyType::kAny:
      return given;
  }
  return given;
}

// Parses a value of a default by its type; returns the text itself if it does not parse.
Setting::Value parsed(const std::string& text, KeyType type) {
  const char* const end = text.data() + text.size();
  int64_t integer = 0;
  double number = 0;
  const bool is_boolean = type == KeyType::kBoolean || type == KeyType::kBooleanIntegerOrTexts;
  if (is_boolean && (text == "true" || text == "false")) return text == "true";
  if (type == KeyType::kInteger || type == KeyType::kIntegers || type == KeyType::kIntegerOrIntegers ||
      type == KeyType::kIntegerOrSteps) {
    if (std::from_chars(text.data(), end, integer).ptr == end) return integer;
  }
  if (type == KeyType::kNumber || type == KeyType::kNumbers || type == KeyType::kNumberOrNumbers) {
    if (std::from_chars(text.data(), end, number).ptr == end) return number;
  }
  return text;
}

bool is_list(KeyType type) {
  return type == KeyType::kIntegers || type == KeyType::kNumbers || type == KeyType::kTexts ||
         type == KeyType::kTimes;
}

Setting::Array parsed_list(const Key& key, const std::string& path, const Position& position) {
  Setting::Array items;
  const std::string body = key.fallback.substr(1, key.fallback.size() - 2);
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find(", ", begin), body.size());
    items.emplace_back(parsed(body.substr(begin, end - begin), key.type), path, position);
    begin = end + 2;
  }
  return items;
}

// True for "1h20m40s": each part at most once, in this order, below 24 hours, 60 minutes, 60 seconds.
bool is_clock_time(std::string_view text) {
  constexpr std::pair<char, int> kParts[] = {{'h', 24}, {'m', 60}, {'s', 60}};
  if (text.empty()) return false;
  for (const auto& [letter, limit] : kParts) {
    int count = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count).ptr;
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (digits == 0 || digits == text.size() || *end != letter) continue;
    if (!is_digit(text[0]) || digits > 2 || count >= limit) return false;
    text.remove_prefix(digits + 1);
  }
  return text.empty();
}

}  // namespace

std::string time_unit(std::string_view text) {
  if (is_clock_time(text)) return "sec";
  for (const std::string_view unit : {"iter", "ep", "ba", "sp", "tok", "dur", "sec"}) {
    if (!text.ends_with(unit)) continue;
    const auto number = time_number(text.substr(0, text.size() - unit.size()));
    if (number && (unit == "dur" || *number == std::trunc(*number))) return std::string(unit);
  }
  return "";
}

namespace {

// Throws Rejected, or UserError where the message is a special one.
Setting accepted(const Key& key, const Setting& given) {
  if (given.is_text() && contains(key.words, given.text())) return given;
  Setting good = checked_type(key, given);
  if (good.is_text()) good.value = std::string(key.choice_named(good.text()));
  if (!key.choices.empty() && !contains(key.choices, good.is_text() ? good.text() : good.toml()))
    reject(given);
  return good;
}

bool accepts(const Key& key, const Setting& given) try {
  accepted(key, given);
  return true;
} catch (const Rejected&) {
  return false;
} catch (const UserError&) {
  return false;
}

[[noreturn]] void fail(const Key& key, const Setting& whole, const Setting& rejected) {
  const bool is_item = &whole != &rejected;
  const std::string meant = value_hint(key, rejected, [&](const Setting& guess) {
    return accepts(key, is_item ? with_value(whole, Setting::Array{guess}) : guess);
  });
  rejected.fail("expected " + key.expects() + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace

Setting checked(const Key& key, const Setting& given) {
  if (key.refused()) given.fail_key(key.refusal);
  try {
    return accepted(key, given);
  } catch (const Rejected& rejected) {
    fail(key, given, rejected.value);
  }
}

Setting fallback_value(const Key& key, std::string path, Position position) {
  Setting value({}, path, position);
  if (key.may_be_absent()) return value;
  if (is_list(key.type)) {
    value.value = parsed_list(key, path, position);
  } else {
    value.value = parsed(key.fallback, key.type);
  }
  return checked(key, value);
}

}  // namespace tutti
