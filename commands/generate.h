#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct ContinueOptions {
  std::string path;          // of a checkpoint's or a run's folder
  std::string prompt;        // a text; of a model without a tokenizer whose tokens are no bytes, "17 4 2"
  int64_t length = 200;      // tokens to add
  double temperature = 0.8;  // of the softmax; 0 = always the likeliest token
  int64_t top_k = 0;         // sample among the k likeliest tokens; 0 = all
  uint64_t seed = 0;         // the same seed gives the same text
  bool logprobs = false;     // instead of the text a line of JSON for each new token
};

// `tutti generate`: continues the prompt with a checkpoint's language model, on one rank, by the weights that
// evaluations use; "" stands for a line break. Needs neither the recipe nor its data, but for the tokenizer:
// the checkpoint has the recipe. Returns the prompt and the added tokens; invalid UTF-8 is shown as U+FFFD.
// With `logprobs` lines such as {"token": 17, "text": " a", "logprob": -1.5}, by the softmax of the model's
// scores, whatever the temperature.
// Throws UserError.
std::string generate_text(const ContinueOptions& options);

}  // namespace tutti
