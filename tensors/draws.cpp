#include "tensors/draws.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/_sample_dirichlet.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>

#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

class KeyedDraws final : public Draws {
 public:
  explicit KeyedDraws(const RandomKey& key) : key_(key) {}

  double uniform(double low, double high) override { return low + (high - low) * key_.uniform(counter_++); }

  int64_t integer(int64_t low, int64_t high) override {
    TUTTI_ASSERT(low < high, "an empty range");
    return low + static_cast<int64_t>(key_.below(static_cast<uint64_t>(high - low), counter_++));
  }

  bool bernoulli(double probability) override { return key_.uniform(counter_++) < probability; }

  // 32 bits decide on each.
  void bernoullis(double probability, std::span<bool> drawn) override {
    const auto below = static_cast<uint64_t>(std::llround(probability * 0x1p32));
    for (std::size_t i = 0; i < drawn.size(); i += 2) {
      const uint64_t bits = key_.bits(counter_++);
      drawn[i] = (bits >> 32) < below;
      if (i + 1 < drawn.size()) drawn[i + 1] = (bits & 0xffffffff) < below;
    }
  }

  double beta(double a, double b) override { return dirichlet(std::vector<double>{a, b})[0]; }

  std::vector<double> dirichlet(std::span<const double> concentrations) override {
    return numbers(at::_sample_dirichlet(doubles(concentrations), generator()));
  }

  at::Tensor permutation(int64_t size) override { return at::randperm(size, generator()); }

  at::Tensor uniforms(const Shape& shape) override { return at::rand(shape, generator()); }

  std::vector<int64_t> choose(int64_t count, std::span<const double> probabilities) override {
    const at::Tensor chosen = at::multinomial(doubles(probabilities), count, false, generator());
    return {chosen.data_ptr<int64_t>(), chosen.data_ptr<int64_t>() + count};
  }

 private:
  static at::Tensor doubles(std::span<const double> numbers) {
    return at::tensor(at::ArrayRef<double>(numbers.data(), numbers.size()), at::kDouble);
  }
  static std::vector<double> numbers(const at::Tensor& tensor) {
    return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
  }

  // A new one for each call: its setup costs microseconds, which most callers do not need.
  at::Generator generator() { return at::detail::createCPUGenerator(key_.bits(counter_++)); }

  RandomKey key_;
  uint64_t counter_ = 0;
};

}  // namespace

void Draws::bernoullis(double probability, std::span<bool> drawn) {
  for (bool& outcome : drawn) outcome = bernoulli(probability);
}

std::unique_ptr<Draws> random_draws() {
  const int64_t seed = at::randint(std::numeric_limits<int64_t>::max(), {}, at::kLong).item<int64_t>();
  return make_draws(static_cast<uint64_t>(seed), {});
}

std::unique_ptr<Draws> make_draws(uint64_t seed, const DrawKey& key) {
  return std::make_unique<KeyedDraws>(RandomKey(seed, key.name)
                                          .fold_in(static_cast<uint64_t>(key.step))
                                          .fold_in(static_cast<uint64_t>(key.place)));
}

}  // namespace tutti
