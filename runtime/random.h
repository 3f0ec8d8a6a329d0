#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// splitmix64's finaliser (Steele et al., 2014).
constexpr uint64_t mix_bits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A counter-based generator: the same key and counter give the same number on every rank, in any order, so
// there is no state to save. Words of the key are mixed by mix_bits. Constexpr functions serve kernels of all
// devices too.
class RandomKey {
 public:
  RandomKey(uint64_t seed, std::string_view purpose);
  constexpr explicit RandomKey(uint64_t state) : state_(state) {}  // of a key's state()

  // A new key, one word longer.
  constexpr RandomKey fold_in(uint64_t word) const { return RandomKey(absorb(state_, word)); }
  constexpr uint64_t state() const { return state_; }

  constexpr uint64_t bits(uint64_t counter = 0) const {  // 64 uniform bits
    return mix_bits(mix_bits(state_ ^ kOutput) + kGolden * (counter + 1));
  }
  double uniform(uint64_t counter = 0) const;              // in [0, 1), 53 bits
  uint64_t below(uint64_t n, uint64_t counter = 0) const;  // in [0, n), n > 0; bias below n / 2^64

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  static constexpr uint64_t kOutput = 0x2545f4914f6cdd1d;  // separates a key's draws from longer keys

  static constexpr uint64_t absorb(uint64_t state, uint64_t word) {
    return mix_bits((state ^ word) + kGolden);
  }

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
