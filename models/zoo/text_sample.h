#pragma once

#include <cstdint>
#include <string>

#include "models/zoo/gpt.h"

namespace tutti {

struct TextSampleOptions {
  int64_t length = 200;      // bytes to add
  double temperature = 1.0;  // of the softmax that is drawn from; 0 takes the likeliest byte
  uint64_t seed = 0;
};

// What the model, trained on bytes, adds to `prompt` one byte at a time, seeing the last n_positions bytes;
// "\n" stands for an empty prompt. The same seed gives the same text. Runs the model in evaluation mode.
std::string sample_text(Gpt& model, const std::string& prompt, const TextSampleOptions& options);

}  // namespace tutti
