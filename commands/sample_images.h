#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct SampleImagesOptions {
  std::string path;              // of a checkpoint's or a run's folder
  std::string output;            // a .png or .h5 file to write
  int64_t samples = 64;          // images
  int64_t steps = 50;            // of the sampler; at most the model's num_train_timesteps
  std::string sampler = "ddim";  // or "ddpm"
  uint64_t seed = 0;             // the same seed gives the same images
};

// `tutti generate --output`: draws new images from a checkpoint's diffusion model, with the weights that
// evaluations use, on one rank, and writes the images: as a grid, small images enlarged; or as "images",
// float32 [samples, channels, height, width] of [-1, 1]. Needs neither the recipe nor its data. Returns the
// text to print. Throws UserError.
std::string sample_images(const SampleImagesOptions& options);

}  // namespace tutti
