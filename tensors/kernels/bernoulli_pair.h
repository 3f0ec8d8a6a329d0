#pragma once

#include <cstdint>

#include "runtime/random.h"

namespace tutti {

struct BernoulliPair {
  bool first, second;
};

// Numbers 2 * `pair` and 2 * `pair` + 1 of a sample, by its key. Each is true with the probability
// `below` / 2^32. For kernels of all devices.
constexpr BernoulliPair bernoulli_pair(const RandomKey& sample, int64_t pair, uint64_t below) {
  const uint64_t bits = sample.bits(static_cast<uint64_t>(pair));
  return {(bits >> 32) < below, (bits & 0xffffffff) < below};
}

}  // namespace tutti
