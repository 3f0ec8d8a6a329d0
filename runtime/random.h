#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// Randomness as a function: the same key gives the same draw on every rank, in every order, after every
// resume, so that nothing needs saving. Mixing is splitmix64's finaliser (Steele et al., 2014) over each word
// of the key.
class RandomKey {
 public:
  RandomKey(uint64_t seed, std::string_view purpose);

  // A key that is longer by one word; the original is unchanged.
  RandomKey fold_in(uint64_t word) const;

  uint64_t bits(uint64_t counter = 0) const;   // 64 uniform bits
  double uniform(uint64_t counter = 0) const;  // in [0, 1), 53 bits
  uint64_t below(uint64_t n,
                 uint64_t counter = 0) const;  // in [0, n), n > 0, without modulo bias worth noticing

 private:
  explicit RandomKey(uint64_t state) : state_(state) {}
  uint64_t state_;
};

// A bijection of [0, size) chosen by `draw`, evaluated at one point in O(1) memory: a 4-round-or-more Feistel
// network with cycle walking. Any rank can ask for any position of the epoch's order without building it.
class Permutation {
 public:
  Permutation(uint64_t size, const RandomKey& draw);
  uint64_t operator()(uint64_t position) const;  // position < size

 private:
  uint64_t size_;
  int half_bits_;
  uint64_t keys_[6];
};

}  // namespace tutti
