#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/random.h"
#include "tensors/param_view.h"

namespace tutti {

// The key of random numbers, besides the seed of the run. Equal keys give equal numbers on every rank, in any
// order and in every attempt at a step.
struct DrawKey {
  std::string_view name;  // who draws: "MixUp", or a layer's dotted path
  int64_t step = 0;       // or the epoch, for values drawn once a sample
  int64_t place = 0;      // of the (first) sample in the global batch; 0 for values drawn once a batch
};

// The random numbers of one key, in the order of the calls.
class Draws {
 public:
  virtual ~Draws() = default;

  virtual double uniform(double low, double high) = 0;     // in [low, high)
  virtual int64_t integer(int64_t low, int64_t high) = 0;  // in [low, high)
  virtual bool bernoulli(double probability) = 0;          // true with this probability
  virtual double beta(double a, double b) = 0;             // in [0, 1]
  virtual std::vector<double> dirichlet(std::span<const double> concentrations) = 0;  // sums to 1
  virtual at::Tensor permutation(int64_t size) = 0;     // of 0 to size - 1; int64 [size]
  virtual at::Tensor uniforms(const Shape& shape) = 0;  // float32 in [0, 1)
  // `count` different indices, each drawn from the remaining indices in proportion to its probability. At
  // least `count` probabilities are above 0.
  virtual std::vector<int64_t> choose(int64_t count, std::span<const double> probabilities) = 0;
  // Their key without the place, for kernels that draw for many samples: bernoullis.
  virtual RandomKey key_of_batch() const = 0;
};

// Opens the numbers of a key. A test may give its own in their place (State::draws).
using DrawSource = std::function<std::unique_ptr<Draws>(const DrawKey& key)>;

// New numbers, from libtorch's default generator.
std::unique_ptr<Draws> random_draws();

// The numbers of a run: a function of (seed, key) alone.
std::unique_ptr<Draws> make_draws(uint64_t seed, const DrawKey& key);

// Draws for samples on the device that uses the draws, with the same bits on all devices: bool [sizes], each
// true with `probability`. Dim 0 is the samples, of which the first has place `first_place` in the global
// batch; a sample's numbers depend on `batch_key` (Draws::key_of_batch) and its place. 32 bits decide on
// each.
at::Tensor bernoullis(const RandomKey& batch_key, int64_t first_place, at::IntArrayRef sizes,
                      double probability, c10::Device where);
// The same for a key that the device knows at the draw: int64 [2], RandomKey::state and first_place.
at::Tensor bernoullis(const at::Tensor& key, at::IntArrayRef sizes, double probability);

}  // namespace tutti
