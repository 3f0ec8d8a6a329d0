#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// A counter-based generator: the same key and counter give the same number on every rank, in any order, so
// there is no state to save. Words of the key are mixed by splitmix64's finaliser (Steele et al., 2014).
class RandomKey {
 public:
  RandomKey(uint64_t seed, std::string_view purpose);

  // A new key, one word longer.
  RandomKey fold_in(uint64_t word) const;

  uint64_t bits(uint64_t counter = 0) const;               // 64 uniform bits
  double uniform(uint64_t counter = 0) const;              // in [0, 1), 53 bits
  uint64_t below(uint64_t n, uint64_t counter = 0) const;  // in [0, n), n > 0; bias below n / 2^64

 private:
  explicit RandomKey(uint64_t state) : state_(state) {}
  uint64_t state_;
};

// A permutation of [0, size) chosen by `key`, in O(1) memory: a 6-round Feistel network with cycle walking.
// Any rank can compute any position of the epoch's order.
class Permutation {
 public:
  Permutation(uint64_t size, const RandomKey& key);
  uint64_t operator()(uint64_t position) const;  // position < size

 private:
  uint64_t size_;
  int half_bits_;
  uint64_t keys_[6];
};

}  // namespace tutti
