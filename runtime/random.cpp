#include "runtime/random.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tutti {
namespace {

constexpr int kSmallestHalf = 4;  // bits; a round function needs more values than fewer give

// Eight bytes as a little-endian word.
uint64_t load_word(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return word;
}

}  // namespace

RandomKey::RandomKey(uint64_t seed, std::string_view purpose)
    : state_(absorb(absorb(0, seed), purpose.size())) {
  for (size_t i = 0; i < purpose.size(); i += 8) state_ = absorb(state_, load_word(purpose.substr(i, 8)));
}

double RandomKey::uniform(uint64_t counter) const {
  return static_cast<double>(bits(counter) >> 11) * 0x1p-53;
}

// Lemire, "Fast random integer generation in an interval" (2019), without the rejection step.
uint64_t RandomKey::below(uint64_t n, uint64_t counter) const {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits(counter)) * n) >> 64);
}

Permutation::Permutation(uint64_t size, const RandomKey& key)
    : size_(size), half_bits_(std::max<int>(kSmallestHalf, (std::bit_width(size - (size > 0)) + 1) / 2)) {
  for (uint64_t i = 0; i < std::size(keys_); ++i) keys_[i] = key.bits(i);
}

// The network permutes [0, 4^half_bits). Cycle walking (repeat until the value is below size) makes that a
// permutation of [0, size).
uint64_t Permutation::operator()(uint64_t position) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = position >> half_bits_;
    uint64_t right = position & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix_bits(right + key) & mask);
      left = right;
      right = next;
    }
    position = left << half_bits_ | right;
  } while (position >= size_);
  return position;
}

}  // namespace tutti
