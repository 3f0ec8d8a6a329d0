#include "io/tokens/token_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t kFewestBytes = 64;       // that are enough for a guess
constexpr std::size_t kFewestForDoubt = 4096;  // that are enough to say that these are no tokens
constexpr std::size_t kFewestForHistograms = 1 << 15;
constexpr uint32_t kMostOfUpperHalf = 31;         // of a vocabulary of two million
constexpr uint32_t kLeastOfLowerHalf = 1u << 15;  // many tokens have it, if the vocabulary exceeds uint16
constexpr std::size_t kFew = 10;                  // one of so many numbers may be an odd one
constexpr uint32_t kMiddle = 1u << 15;            // of uint16
constexpr uint32_t kNearEnd = 64'000;             // of uint16

template <int kBytes>
uint32_t little_endian(const uint8_t* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < kBytes; ++i) value |= uint32_t{bytes[i]} << 8 * i;
  return value;
}

// Numbers by their halves. A number below 0, such as -100, has an upper half of ones.
struct Halves {
  std::size_t all = 0;
  std::size_t filled = 0;  // lower halves that are not 0
  std::size_t large = 0;   // lower halves of at least kLeastOfLowerHalf
  std::size_t beyond = 0;  // upper halves other than 0, and not of a number below 0
  std::size_t far = 0;     // the same above kMostOfUpperHalf
};

template <int kBytes>
Halves halves_of(std::span<const uint8_t> head) {
  constexpr uint32_t kOnes = kBytes == 4 ? ~uint32_t{0} : 0xffff;
  Halves halves;
  for (std::size_t i = 0; i + 2 * kBytes <= head.size(); i += 2 * kBytes) {
    const uint32_t lower = little_endian<kBytes>(&head[i]), upper = little_endian<kBytes>(&head[i + kBytes]);
    const bool is_negative = upper == kOnes && lower > kOnes / 2;
    ++halves.all;
    halves.filled += lower != 0;
    halves.large += lower >= kLeastOfLowerHalf && !is_negative;
    halves.beyond += upper != 0 && !is_negative;
    halves.far += upper > kMostOfUpperHalf && !is_negative;
  }
  return halves;
}

// In most numbers of `halves` the upper half is as it would be in numbers of this width.
bool are_numbers(const Halves& halves, std::size_t odd) {
  return halves.filled > 0 && kFew * odd < halves.filled;
}

double from_float16(uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<double>(bits & 1023);
  if (exponent == 31) return HUGE_VAL;  // or no number
  const double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits >> 15) != 0 ? -value : value;
}

// A number of floating point of 2, 4 or 8 bytes.
double float_at(const uint8_t* bytes, std::size_t size, bool is_big_endian) {
  uint64_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= uint64_t{bytes[is_big_endian ? size - 1 - i : i]} << 8 * i;
  if (size == sizeof(double)) return std::bit_cast<double>(bits);
  if (size == sizeof(float)) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return from_float16(bits);
}

// Whole numbers as floating point: numpy's default after arithmetic, or torch's after `.float()`.
bool are_floats(std::span<const uint8_t> head, std::size_t size, bool is_big_endian) {
  constexpr double kMost = 1 << 24;
  std::size_t all = 0, whole = 0, filled = 0;
  for (std::size_t i = 0; i + size <= head.size(); i += size, ++all) {
    const double value = float_at(&head[i], size, is_big_endian);
    whole += value >= 0 && value < kMost && std::trunc(value) == value;
    filled += value >= 1 && value < kMost;
  }
  return kFew * (all - whole) < all && 2 * filled > all;
}

std::string float_numbers(std::span<const uint8_t> head, std::size_t size) {
  for (const bool is_big_endian : {false, true})
    if (are_floats(head, size, is_big_endian))
      return std::string(is_big_endian ? "big-endian " : "") + "float" + std::to_string(8 * size) +
             " numbers; expected whole ones: numpy's tokens.astype(\"int32\").tofile(...)";
  return "";
}

// Compressed or random bytes as uint16. Most tokens are of the lower half of a vocabulary.
bool are_spread(std::span<const uint8_t> head) {
  std::size_t all = 0, upper = 0;
  uint32_t most = 0;
  for (std::size_t i = 0; i + 2 <= head.size(); i += 2, ++all) {
    const uint32_t value = little_endian<2>(&head[i]);
    upper += value >= kMiddle;
    most = std::max(most, value);
  }
  return most >= kNearEnd && 5 * upper > all;
}

// How often each value of the first or the second of two bytes is there.
std::array<double, 256> histogram(std::span<const uint8_t> head, std::size_t first) {
  std::array<double, 256> counts{};
  const double share = 2.0 / static_cast<double>(head.size());
  for (std::size_t i = first; i < head.size(); i += 2) counts[head[i]] += share;
  return counts;
}

double distance(const std::array<double, 256>& a, const std::array<double, 256>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / 2;
}

// Above it, a byte is not used.
std::size_t largest(const std::array<double, 256>& counts) {
  std::size_t most = 255;
  while (most > 0 && counts[most] == 0) --most;
  return most;
}

}  // namespace

std::string token_type_name(TokenFormat format) {
  constexpr const char* kNames[] = {"uint8", "uint16", "int32", "uint32", "int64"};
  return kNames[static_cast<int>(format)];
}

std::size_t token_bytes(TokenFormat format) {
  constexpr std::size_t kBytes[] = {1, 2, 4, 4, 8};
  return kBytes[static_cast<int>(format)];
}

TokenFormat likely_token_type(std::span<const uint8_t> head) {
  if (head.size() < kFewestBytes) return TokenFormat::kUint16;
  const Halves halves_of_int64 = halves_of<4>(head), halves_of_int32 = halves_of<2>(head);
  if (are_numbers(halves_of_int64, halves_of_int64.beyond)) return TokenFormat::kInt64;
  const bool exceeds_uint16 = are_numbers(halves_of_int32, halves_of_int32.far) &&
                              kFew * kFew * halves_of_int32.large >= halves_of_int32.all;
  return are_numbers(halves_of_int32, halves_of_int32.beyond) || exceeds_uint16 ? TokenFormat::kInt32
                                                                                : TokenFormat::kUint16;
}

std::string other_numbers(std::span<const uint8_t> head) {
  head = head.first(head.size() / 8 * 8);
  if (head.size() < kFewestForDoubt) return "";
  for (const std::size_t size : {sizeof(float), sizeof(double)})
    if (std::string floats = float_numbers(head, size); !floats.empty()) return floats;
  if (likely_token_type(head) != TokenFormat::kUint16) return "";
  if (std::string floats = float_numbers(head, 2); !floats.empty()) return floats;
  std::array<double, 256> even_spread;
  even_spread.fill(1.0 / 256);
  const auto first = histogram(head, 0), second = histogram(head, 1);
  const std::size_t upper = largest(first), lower = largest(second);
  constexpr std::size_t kMostUpper = 200, kLeastLower = 250;  // of the bytes of a vocabulary of 50,000
  const char* const swapped = "; expected little-endian ones: numpy's tokens.astype(\"<i4\").tofile(...)";
  std::vector<uint8_t> turned(head.begin(), head.end());
  for (std::size_t i = 0; i < turned.size(); i += 4)
    std::reverse(turned.begin() + std::ptrdiff_t(i), turned.begin() + std::ptrdiff_t(i) + 4);
  if (likely_token_type(turned) == TokenFormat::kInt32)
    return std::string("big-endian int32 numbers") + swapped;
  if ((upper == 0 && lower > 0) || (upper < kMostUpper && lower >= kLeastLower))
    return std::string("big-endian numbers of two bytes") + swapped;
  constexpr double kAlike = 0.1, kUneven = 0.2;
  if (head.size() >= kFewestForHistograms && distance(first, second) < kAlike &&
      distance(first, even_spread) > kUneven)
    return "uint8 numbers, a byte a token; expected kind = \"bytes\"";
  if (are_spread(head))
    return "no tokens: read as uint16, they are spread over all values up to 65535, as random or compressed "
           "bytes are";
  return "";
}

}  // namespace tutti
