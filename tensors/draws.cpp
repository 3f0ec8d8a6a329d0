#include "tensors/draws.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_sample_dirichlet.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/error.h"
#include "tensors/kernels/bernoulli_pair.h"
#include "tensors/kernels/graph.h"
#include "tensors/kernels/operator.h"

namespace tutti {
namespace {

constexpr int64_t kNumbersAThread = 16384;  // fewer are quicker drawn than shared out

class KeyedDraws final : public Draws {
 public:
  KeyedDraws(const RandomKey& batch_key, int64_t place)
      : batch_key_(batch_key), key_(batch_key.fold_in(static_cast<uint64_t>(place))) {}

  double uniform(double low, double high) override { return low + (high - low) * key_.uniform(counter_++); }

  int64_t integer(int64_t low, int64_t high) override {
    TUTTI_ASSERT(low < high, "an empty range");
    return low + static_cast<int64_t>(key_.below(static_cast<uint64_t>(high - low), counter_++));
  }

  bool bernoulli(double probability) override { return key_.uniform(counter_++) < probability; }

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

  RandomKey key_of_batch() const override { return batch_key_; }

 private:
  static at::Tensor doubles(std::span<const double> numbers) {
    return at::tensor(at::ArrayRef<double>(numbers.data(), numbers.size()), at::kDouble);
  }
  static std::vector<double> numbers(const at::Tensor& tensor) {
    return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
  }

  // A new one for each call: its setup costs microseconds, which most callers do not need.
  at::Generator generator() { return at::detail::createCPUGenerator(key_.bits(counter_++)); }

  RandomKey batch_key_, key_;
  uint64_t counter_ = 0;
};

void draw_bernoullis(const RandomKey& sample, uint64_t below, bool* drawn, int64_t count) {
  int64_t pair = 0;
  for (; 2 * pair + 1 < count; ++pair) {
    const BernoulliPair both = bernoulli_pair(sample, pair, below);
    drawn[2 * pair] = both.first;
    drawn[2 * pair + 1] = both.second;
  }
  if (2 * pair < count) drawn[2 * pair] = bernoulli_pair(sample, pair, below).first;
}

at::Tensor& draw_bernoullis_on_cpus(at::Tensor& drawn, const std::optional<at::Tensor>& key,
                                    int64_t batch_state, int64_t first_place, int64_t below) {
  if (key) {
    batch_state = key->const_data_ptr<int64_t>()[0];
    first_place = key->const_data_ptr<int64_t>()[1];
  }
  const int64_t size = drawn.numel() / drawn.size(0);
  bool* const to = drawn.mutable_data_ptr<bool>();
  const RandomKey batch_key(static_cast<uint64_t>(batch_state));
  at::parallel_for(0, drawn.size(0), std::max<int64_t>(1, kNumbersAThread / size),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       draw_bernoullis(batch_key.fold_in(static_cast<uint64_t>(first_place + i)),
                                       static_cast<uint64_t>(below), to + i * size, size);
                   });
  return drawn;
}

// With a key of the device, `batch_state` and `first_place` do not count.
at::Tensor draw_bernoullis(const std::optional<at::Tensor>& key, uint64_t batch_state, int64_t first_place,
                           at::IntArrayRef sizes, double probability, c10::Device where) {
  static const auto draw = device_operator(
      "bernoullis_",
      "(Tensor(a!) drawn, Tensor? key, int of_batch, int first_place, int below) -> Tensor(a!)",
      draw_bernoullis_on_cpus);
  at::Tensor drawn = at::empty(sizes, at::TensorOptions(where).dtype(at::kBool));
  if (drawn.numel() == 0) return drawn;
  return draw.call(drawn, key, static_cast<int64_t>(batch_state), first_place,
                   std::llround(probability * 0x1p32));
}

}  // namespace

at::Tensor bernoullis(const RandomKey& batch_key, int64_t first_place, at::IntArrayRef sizes,
                      double probability, c10::Device where) {
  return draw_bernoullis({}, batch_key.state(), first_place, sizes, probability, where);
}

at::Tensor bernoullis(const at::Tensor& key, at::IntArrayRef sizes, double probability) {
  return draw_bernoullis(key, 0, 0, sizes, probability, key.device());
}

std::unique_ptr<Draws> random_draws() {
  const int64_t seed = at::randint(std::numeric_limits<int64_t>::max(), {}, at::kLong).item<int64_t>();
  return make_draws(static_cast<uint64_t>(seed), {});
}

std::unique_ptr<Draws> make_draws(uint64_t seed, const DrawKey& key) {
  if (records_graph()) refuse_in_graph("'" + std::string(key.name) + "' draws numbers on the host");
  return std::make_unique<KeyedDraws>(RandomKey(seed, key.name).fold_in(static_cast<uint64_t>(key.step)),
                                      key.place);
}

}  // namespace tutti
