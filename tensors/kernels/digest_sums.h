#pragma once

#include <cstdint>

#include "runtime/random.h"

namespace tutti {

// A digest of bytes from sums, so that neither order nor parts matter: any grid of threads gives the same.
// Bytes are taken as little-endian words of 32 bits, filled up with zeros, in blocks of 4096 bytes. A word of
// a block's first half and the word at the same place of the second half are a pair. Both words are combined
// with a key of the pair's number, which depends on the place, then multiplied. A single changed word changes
// the sum, even if the partner is 0. For kernels of all devices.
struct DigestSums {
  uint64_t products = 0;
  uint64_t words = 0;  // modulo 2^32
};

constexpr int64_t kDigestPairs = 512;  // of a block; the last one is shorter
constexpr int64_t kDigestBlock = 8 * kDigestPairs;

struct DigestKeys {
  uint32_t first, second;
};
constexpr DigestKeys kDigestKeySteps{0x9e3779b1, 0xc2b2ae3d};  // from pair to pair
constexpr DigestKeys digest_keys(int64_t pair) {
  const auto number = static_cast<uint32_t>(pair);
  return {number * kDigestKeySteps.first + 0x85ebca77, number * kDigestKeySteps.second + 0x27d4eb2f};
}

constexpr uint64_t digest_product(uint32_t first, uint32_t second, const DigestKeys& keys) {
  return static_cast<uint64_t>(first ^ keys.first) * (second ^ keys.second);
}

constexpr int64_t digest_pairs(int64_t bytes) {
  return bytes / kDigestBlock * kDigestPairs + (bytes % kDigestBlock + 7) / 8;
}

// The words of a pair, by number. A second word behind the last word is 0.
struct DigestPair {
  int64_t first, second;
};
constexpr DigestPair digest_pair(int64_t pair, int64_t bytes) {
  const int64_t block = pair / kDigestPairs, rest = bytes - block * kDigestBlock;
  const int64_t first = block * 2 * kDigestPairs + pair % kDigestPairs;
  return {first, first + (rest < kDigestBlock ? (rest + 7) / 8 : kDigestPairs)};
}

constexpr uint32_t digest_word(const uint8_t* bytes, int64_t word, int64_t count) {
  uint32_t number = 0;
  for (int64_t i = 0; i < 4 && 4 * word + i < count; ++i) number |= uint32_t{bytes[4 * word + i]} << (8 * i);
  return number;
}

constexpr uint64_t digest_of(const DigestSums& sums, int64_t bytes) {
  return mix_bits(mix_bits(sums.products + mix_bits(static_cast<uint64_t>(bytes))) +
                  (sums.words & 0xffffffff));
}

}  // namespace tutti
