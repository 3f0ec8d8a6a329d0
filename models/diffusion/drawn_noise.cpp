#include "models/diffusion/drawn_noise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

constexpr uint64_t kNoise = 1;  // the counter of a key's noise; its timestep has 0

}  // namespace

void draw_normal(const RandomKey& key, const at::Tensor& into) {
  into.normal_(0, 1, at::detail::createCPUGenerator(key.bits(kNoise)));
}

DrawnNoise drawn_noise(const std::vector<RandomKey>& keys, at::IntArrayRef shape, int64_t timesteps) {
  const auto samples = static_cast<int64_t>(keys.size());
  std::vector<int64_t> sizes{samples};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  const DrawnNoise drawn{at::empty({samples}, at::kLong), at::empty(sizes, at::kFloat)};
  for (int64_t i = 0; i < samples; ++i) {
    const RandomKey& key = keys[static_cast<std::size_t>(i)];
    drawn.timesteps.data_ptr<int64_t>()[i] =
        static_cast<int64_t>(key.below(static_cast<uint64_t>(timesteps)));
    draw_normal(key, drawn.noise.select(0, i));
  }
  return drawn;
}

std::vector<RandomKey> keys_of_places(const RandomKey& batch_key, int64_t first_place, int64_t samples) {
  std::vector<RandomKey> keys;
  for (int64_t i = 0; i < samples; ++i)
    keys.push_back(batch_key.fold_in(static_cast<uint64_t>(first_place + i)));
  return keys;
}

std::vector<RandomKey> keys_of_contents(const at::Tensor& images) {
  const at::Tensor on_host = images.detach().cpu().to(at::kFloat).contiguous();
  const int64_t size = on_host.numel() / std::max<int64_t>(on_host.size(0), 1);
  const float* from = on_host.const_data_ptr<float>();
  std::vector<RandomKey> keys;
  for (int64_t i = 0; i < on_host.size(0); ++i) {
    RandomKey key(0, "noise of an evaluation");
    for (int64_t j = 0; j < size; ++j) key = key.fold_in(std::bit_cast<uint32_t>(from[i * size + j]));
    keys.push_back(key);
  }
  return keys;
}

}  // namespace tutti
