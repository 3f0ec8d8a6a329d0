#include "recipe/time/time_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// The zeros of the scripts of Unicode's first plane. The other digits follow each zero.
constexpr std::array<char32_t, 36> kZeros = {
    0x660,  0x6f0,  0x7c0,  0x966,  0x9e6,  0xa66,  0xae6,  0xb66,  0xbe6,  0xc66,  0xce6,  0xd66,
    0xde6,  0xe50,  0xed0,  0xf20,  0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10};

constexpr const char* kAsciiBlanks = " \t\n\r\f\v";

// Python's other blanks, first and last of each run.
constexpr std::array<std::pair<char32_t, char32_t>, 9> kOtherBlanks = {{{0x1c, 0x1f},
                                                                        {0x85, 0x85},
                                                                        {0xa0, 0xa0},
                                                                        {0x1680, 0x1680},
                                                                        {0x2000, 0x200a},
                                                                        {0x2028, 0x2029},
                                                                        {0x202f, 0x202f},
                                                                        {0x205f, 0x205f},
                                                                        {0x3000, 0x3000}}};

// Removes "<digits><letter>" from the front; -1 if absent.
int remove_part(std::string_view& text, char letter) {
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == 0 || digits > 2 || digits == text.size() || text[digits] != letter) return -1;
  int value = 0;
  std::from_chars(text.data(), text.data() + digits, value);
  text.remove_prefix(digits + 1);
  return value;
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(kAsciiBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kAsciiBlanks) + 1 - first);
}

std::string without_underscores(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] != '_' || !between) digits += text[i];
  }
  return digits;
}

std::string digits_of(double value, std::chars_format format) {
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  return {text.data(), end};
}

// The bytes and the code of the first character of `text`; 0 bytes if not of Unicode's first plane.
std::pair<size_t, char32_t> first_character(std::string_view text) {
  const auto bits = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  if (text.empty()) return {0, 0};
  const size_t size = bits(0) < 0x80 ? 1 : (bits(0) >> 5) == 0x6 ? 2 : (bits(0) >> 4) == 0xe ? 3 : 0;
  if (size == 0 || text.size() < size) return {0, 0};
  char32_t code = bits(0) & (size == 1 ? 0x7f : size == 2 ? 0x1f : 0xf);
  for (size_t i = 1; i < size; ++i) code = code << 6 | (bits(i) & 0x3f);
  return {size, code};
}

// The bytes and the value of a first digit beyond ASCII.
std::pair<size_t, int> foreign_digit(std::string_view text) {
  const auto [size, code] = first_character(text);
  for (const char32_t zero : kZeros)
    if (code >= zero && code < zero + 10) return {size, static_cast<int>(code - zero)};
  return {0, 0};
}

size_t foreign_blank(std::string_view text) {
  const auto [size, code] = first_character(text);
  for (const auto& [first, last] : kOtherBlanks)
    if (code >= first && code <= last) return size;
  return 0;
}

std::string padded_clock(std::string text) {
  if (text.find('h') == std::string::npos) text.insert(0, "0h");
  if (text.find('m') == std::string::npos)
    for (size_t at = 0; (at = text.find('h', at)) != std::string::npos; ++at) text.insert(at + 1, "0m");
  if (text.find('s') == std::string::npos) text += "0s";
  return text;
}

// Of two digits, Python's strptime takes the first in ASCII only.
bool has_leading_foreign_digit(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t size = foreign_digit(text.substr(i)).first;
    const std::string_view rest = text.substr(i + size);
    if (size > 0 && !rest.empty() && (is_digit(rest[0]) || foreign_digit(rest).first > 0)) return true;
  }
  return false;
}

}  // namespace

std::optional<int> clock_seconds(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const int hours = remove_part(text, 'h');
  const int minutes = remove_part(text, 'm');
  const int seconds = remove_part(text, 's');
  if (!text.empty() || hours >= 24 || minutes >= 60 || seconds >= 60) return std::nullopt;
  return 3600 * std::max(hours, 0) + 60 * std::max(minutes, 0) + std::max(seconds, 0);
}

std::optional<int> composer_clock_seconds(std::string_view text) {
  const std::string padded = padded_clock(std::string(text));
  if (has_leading_foreign_digit(padded)) return std::nullopt;
  return clock_seconds(ascii_number(padded));
}

std::optional<double> python_float(std::string_view text) {
  std::string digits = without_underscores(without_blanks(text));
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  if (digits.find('(') != std::string::npos) return std::nullopt;  // nan(...)
  double value = 0.0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(digits.c_str(), nullptr);
  return value;
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  const bool plain = size == 0.0 || (size >= 1e-4 && size < 1e16);
  if (!plain || std::isinf(value)) return digits_of(value, std::chars_format::scientific);
  const std::string text = digits_of(value, std::chars_format::fixed);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string whole_text(double value) { return digits_of(value, std::chars_format::fixed); }

std::string ascii_number(std::string_view text) {
  std::string ascii;
  while (!text.empty()) {
    const auto [size, digit] = foreign_digit(text);
    const size_t blank = foreign_blank(text);
    ascii += blank > 0 ? ' ' : size > 0 ? static_cast<char>('0' + digit) : text.front();
    text.remove_prefix(std::max({size, blank, size_t{1}}));
  }
  return ascii;
}

double seconds_in(const std::string& time_unit) {
  if (time_unit == "seconds") return 1.0;
  if (time_unit == "minutes") return 60.0;
  if (time_unit == "hours") return 3600.0;
  if (time_unit == "days") return 86400.0;
  throw UserError("time_unit: expected seconds, minutes, hours or days, found '" + time_unit + "'");
}

}  // namespace tutti
