#include "io/tokens/token_type.h"

#include <algorithm>
#include <cstddef>

namespace tutti {
namespace {

constexpr std::size_t kFewestBytes = 64;          // that are enough for a guess
constexpr uint32_t kMostOfUpperHalf = 31;         // of a vocabulary of two million
constexpr uint32_t kLeastOfLowerHalf = 1u << 15;  // some token has it, if the vocabulary exceeds uint16

struct Halves {
  uint32_t lower = 0, upper = 0;  // the largest of all numbers
};

template <int kBytes>
uint32_t little_endian(const uint8_t* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < kBytes; ++i) value |= uint32_t{bytes[i]} << 8 * i;
  return value;
}

template <int kBytes>
Halves largest_halves(std::span<const uint8_t> head) {
  Halves most;
  for (std::size_t i = 0; i + 2 * kBytes <= head.size(); i += 2 * kBytes) {
    most.lower = std::max(most.lower, little_endian<kBytes>(&head[i]));
    most.upper = std::max(most.upper, little_endian<kBytes>(&head[i + kBytes]));
  }
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
  const Halves of_int64 = largest_halves<4>(head), of_int32 = largest_halves<2>(head);
  if (of_int64.lower > 0 && of_int64.upper == 0) return TokenFormat::kInt64;
  const bool exceeds_uint16 = of_int32.upper <= kMostOfUpperHalf && of_int32.lower >= kLeastOfLowerHalf;
  return of_int32.lower > 0 && (of_int32.upper == 0 || exceeds_uint16) ? TokenFormat::kInt32
                                                                       : TokenFormat::kUint16;
}

}  // namespace tutti
