#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/random.h"

namespace tutti {

class Model;

using Tokens = std::vector<int64_t>;

// What a language model goes on from.
struct Prompt {
  Tokens tokens;    // one at least
  RandomKey draws;  // draws.uniform(i) chooses the i-th token that is added
};

// How it goes on; names and defaults are those of transformers' generate.
struct GenerationOptions {
  int64_t max_new_tokens = 20;            // so many are added
  bool do_sample = false;                 // tokens are drawn; false: each is the likeliest
  double temperature = 1.0;               // > 0; what scores are divided by before one is drawn
  int64_t top_k = 50;                     // it is one of so many of the likeliest; 0 = of all
  double top_p = 1.0;                     // and of the fewest whose probabilities reach this
  std::function<void()> each_token = {};  // called before each; may be empty
};

// Whether a model of so many tokens is taken for one of bytes, whose tokens are text: 128 to 256.
bool tokens_are_bytes(int64_t vocabulary);

// What a causal model adds to each prompt, seeing the last `window` tokens: forward({"input": [N, T]}) gives
// it the scores [N, T, vocabulary] of the tokens that follow. All prompts at once, and one token after the
// other, each by a pass over all that is seen. Without gradients, in evaluation mode, and without a draw from
// the default generator.
std::vector<Tokens> generate_causally(Model& model, int64_t window, const std::vector<Prompt>& prompts,
                                      const GenerationOptions& options);

}  // namespace tutti
