#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/random.h"

namespace tutti {

// The draws for images: a timestep and normal noise each.
struct DrawnNoise {
  at::Tensor timesteps;  // int64 [N], on the host
  at::Tensor noise;      // float32, of the images' shape, on the host
};

// One key a sample; `shape`: of a sample. Timesteps are below `timesteps`.
DrawnNoise drawn_noise(const std::vector<RandomKey>& keys, at::IntArrayRef shape, int64_t timesteps);
// Fills a contiguous tensor of the host with normal noise.
void draw_normal(const RandomKey& key, const at::Tensor& into);

// Keys of samples of a batch: by their places in the global batch, or by their bytes, which gives an image
// the same noise in every evaluation, in any batch and on any rank.
std::vector<RandomKey> keys_of_places(const RandomKey& batch_key, int64_t first_place, int64_t samples);
std::vector<RandomKey> keys_of_contents(const at::Tensor& images);

}  // namespace tutti
