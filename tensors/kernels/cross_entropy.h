#pragma once

#include <cmath>
#include <cstdint>

namespace tutti {

// The sum of exp(x) over numbers of a row, as exp(largest) * sum, in one pass over the numbers; parts of a
// row are summed apart and joined. Milakov and Gimelshein 2018, arXiv:1805.02867.
struct ExpSum {
  float largest = -INFINITY;
  float sum = 0;

  constexpr void join(const ExpSum& other) {
    const float both = largest > other.largest ? largest : other.largest;
    if (both == -INFINITY) return;  // nothing yet, and no difference of infinities
    sum = sum * expf(largest - both) + other.sum * expf(other.largest - both);
    largest = both;
  }
  constexpr void add(float x) { join({x, 1.0F}); }
  // Adds several numbers, with one exp a number and one more. A NaN makes the sum NaN.
  template <int kCount>
  constexpr void add(const float (&numbers)[kCount]) {
    ExpSum own;
    for (const float x : numbers) own.largest = fmaxf(own.largest, x);
    if (own.largest == -INFINITY) {  // no number is larger, and fmaxf leaves NaNs out
      for (const float x : numbers) add(x);
      return;
    }
    for (const float x : numbers) own.sum += expf(x - own.largest);
    join(own);
  }
  constexpr float log() const { return largest + logf(sum); }
};

// Of a row's cross entropy by one of its scores. `log_sum`: the row's ExpSum::log.
constexpr float cross_entropy_gradient(float score, float log_sum, bool is_target, float factor) {
  return (expf(score - log_sum) - (is_target ? 1.0F : 0.0F)) * factor;
}

}  // namespace tutti
