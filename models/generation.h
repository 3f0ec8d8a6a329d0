#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/random.h"

namespace tutti {

class Model;

using Tokens = std::vector<int64_t>;

// The tokens that a language model continues.
struct Prompt {
  Tokens tokens;    // at least one
  RandomKey draws;  // draws.uniform(i) chooses the i-th new token
};

// Names and defaults as of transformers' generate.
struct GenerationOptions {
  int64_t max_new_tokens = 20;  // number of tokens to add
  bool do_sample = false;       // true: sample; false: take the likeliest token
  double temperature = 1.0;     // > 0; scores are divided by it before sampling
  int64_t top_k = 50;           // sample among the k likeliest tokens; 0 = all
  double top_p = 1.0;           // sample among the fewest tokens with this total probability
  int64_t end_token = -1;       // generation ends once each text has this token
  // Gets, unless null, the log-probability of each new token of each prompt: by the softmax of the model's
  // scores, as of a loss, whatever the temperature.
  std::vector<std::vector<double>>* log_probabilities = nullptr;
  std::function<void()> each_token = {};  // called before each token; may be empty
};

// True if a vocabulary of this size (128 to 256) is taken for bytes, so that tokens are text.
bool tokens_are_bytes(int64_t vocabulary);

// How texts are tokens of a language model. Immutable; threads may share it.
class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual Tokens encode(const std::string& text) const = 0;    // of "": what a text begins with
  virtual std::string decode(const Tokens& tokens) const = 0;  // need not be UTF-8
};
using TokenTextPtr = std::shared_ptr<const TokenText>;

// Each byte is a token; "" is a line break.
TokenTextPtr bytes_as_text();

// The tokens that a causal model sees.
struct CausalSight {
  int64_t window = 0;  // the last tokens of a text; at least 1
  // Texts of so many tokens, at most, may run with a KeyCache (models/layers/key_cache.h), which as many
  // layers of attention have to use. 0: none.
  int64_t cached = 0;
  int64_t layers = 0;
};

// Returns the tokens that a causal model adds to each prompt: forward({"input": [N, T]}) returns the scores
// [N, T, vocabulary] of the next tokens; with a cache in the context, the scores of each row's last token,
// [N, 1, vocabulary]. All prompts run as one batch, one token at a time. With a cache, a pass runs over the
// new tokens; else, and if layers do not use the cache, over the whole texts. There are never more passes
// than tokens. Texts that have the end token get more tokens while other texts lack that token. Runs without
// gradients, in evaluation mode, and draws no number from the default generator.
std::vector<Tokens> generate_causally(Model& model, const CausalSight& sight,
                                      const std::vector<Prompt>& prompts, const GenerationOptions& options);
// The same, without a cache.
std::vector<Tokens> generate_causally(Model& model, int64_t window, const std::vector<Prompt>& prompts,
                                      const GenerationOptions& options);

struct TextSampleOptions {
  int64_t length = 200;      // tokens to add
  double temperature = 1.0;  // of the softmax; 0 = always the likeliest token
  uint64_t seed = 0;
};

// Continues `prompt` in evaluation mode; the model sees the last tokens that its window has room for. The
// same seed gives the same text.
std::string sample_text(Model& model, const TokenText& text, const std::string& prompt,
                        const TextSampleOptions& options);

// Forwards, at most, of closing_text.
inline constexpr int64_t kClosingTokens = 400;
// The sample of text to print at the end of a run.
std::string closing_text(Model& model, const TokenText& text, uint64_t seed);

}  // namespace tutti
