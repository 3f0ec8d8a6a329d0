#pragma once

#include <string>
#include <vector>

#include "models/generation.h"
#include "recipe/setting.h"
#include "training/callbacks/writers/file_names.h"
#include "training/engine/callback.h"

namespace tutti {

// Logs, every `interval` and when training is over, how the model goes on from the prompts: a table
// "generations" of the columns "prompt" and "generation". composer.callbacks.Generate, which has a tokenizer:
// here a prompt is a text where the model's tokens are bytes (tokens_are_bytes), or a list of token ids,
// which is shown as "17 4 2"; bytes that make no character are shown as U+FFFD.
//
// Rank 0 writes alone, after the evaluations that are due, and where there is a logger; the others wait for
// it. What is drawn depends on the run's seed, the batch and the place of the prompt alone, and disturbs no
// other draw. What does not fit into memory at once is done in smaller parts.
class Generate final : public Callback {
 public:
  struct Options {
    Setting prompts;         // a list of texts and lists of integers; blamed for errors
    int64_t batch_size = 0;  // prompts at once; 0 = all
    GenerationOptions generation;
  };

  Generate(const Time& interval, Options options) : interval_(interval), options_(std::move(options)) {}

  std::string name() const override { return "Generate"; }
  // UserError where the model writes no text, or does not know a prompt's tokens.
  void require(const State& state) const override;
  void after_load(State& state, Logger&) override { require(state); }
  void batch_end(State& state, Logger&) override { due_ |= interval_.at_batch_end(state); }
  void batch_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void epoch_end(State& state, Logger&) override { due_ |= interval_.at_epoch_end(state); }
  void epoch_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void iteration_end(State& state, Logger&) override { due_ |= interval_.at_iteration_end(state); }
  void iteration_checkpoint(State& state, Logger& logger) override { log_if_due(state, logger); }
  void fit_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void log_if_due(State& state, Logger& logger);
  std::vector<Prompt> prompts(const State& state) const;
  std::vector<Tokens> generations(State& state) const;

  Due interval_;
  Options options_;
  bool due_ = false;         // the interval is over
  int64_t last_batch_ = -1;  // after which it was done
};

}  // namespace tutti
