#pragma once

#include <string>
#include <vector>

#include "models/generation.h"
#include "recipe/setting.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// Refuses a prompt with a token that is not below `vocabulary`.
void require_tokens(const Setting& prompt, const Tokens& tokens, int64_t vocabulary);

// Tokens as text, with U+FFFD for invalid UTF-8; without `text` as "17 4 2".
std::string shown_tokens(const Tokens& tokens, const TokenTextPtr& text);

// Logs the model's continuations of the prompts every `interval` and at the end of training, as a table
// "generations" with the columns "prompt" and "generation". A prompt is a text if the data have a tokenizer
// or the model's tokens are bytes (token_text_of; invalid UTF-8 is shown as U+FFFD), or a list of token ids,
// shown as "17 4 2". composer.callbacks.Generate.
//
// Only rank 0 generates, after due evaluations; other ranks wait. The progress of the run shows the table,
// unless a console logger does. Sampling depends only on the run's seed, the batch and the index of the
// prompt. If memory runs out, fewer prompts run at once.
class Generate final : public PeriodicCallback {
 public:
  struct Options {
    Setting prompts;         // a list of texts and lists of integers; named in errors
    int64_t batch_size = 0;  // prompts at once; 0 = all
    GenerationOptions generation;
  };

  Generate(const Time& interval, Options options)
      : PeriodicCallback(interval), options_(std::move(options)) {}

  std::string name() const override { return "Generate"; }
  // Throws UserError if the model cannot generate or does not have the tokens of a prompt.
  void require(const State& state) const override;
  void batch_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void epoch_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void iteration_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void fit_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void interval_passed(const State&) override { due_ = true; }
  void log_if_due(State& state, Logger& logger);
  void log(const State& state, const std::vector<Tokens>& texts, Logger& logger) const;
  int64_t batch_size(int64_t prompts) const {
    return options_.batch_size > 0 ? options_.batch_size : prompts;
  }
  std::vector<Prompt> prompts(const State& state) const;
  GenerationOptions generation(const State& state) const;

  Options options_;
  bool due_ = false;
  int64_t last_batch_ = -1;  // number of batches at the last generation
};

}  // namespace tutti
