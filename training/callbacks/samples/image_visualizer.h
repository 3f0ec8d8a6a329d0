#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// Logs images of the first microbatch of the first batch, and of the batch after each `interval`, as
// "Images/Train", and of the first batch of each evaluation as "Images/Eval". In segmentation mode also the
// masks "prediction" and "ground_truth", the predicted and true class of each pixel; targets below 0 are a
// class of their own. composer.callbacks.ImageVisualizer.
class ImageVisualizer final : public PeriodicCallback {
 public:
  struct Options {
    bool segmentation = false;   // the model's outputs are scores [N, C, H, W]
    int64_t num_images = 8;      // at most
    bool channels_last = false;  // of images and scores: [N, H, W, C]
    // Keys of images and targets in a batch; named in errors. Targets are classes [N, H, W], or
    // probabilities shaped as the scores.
    Setting input_key = {std::string("input"), "input_key", {}};
    Setting target_key = {std::string("target"), "target_key", {}};
  };

  ImageVisualizer(const Time& interval, Options options)
      : PeriodicCallback(interval), options_(std::move(options)) {}

  std::string name() const override { return "ImageVisualizer"; }
  void after_dataloader(State&, Logger&) override { first_ = due_; }
  // Throw UserError if the training batch has no images or no targets.
  void before_forward(State& state, Logger& logger) override;
  void before_loss(State& state, Logger& logger) override;
  void batch_end(State& state, Logger& logger) override {
    due_ = false;
    PeriodicCallback::batch_end(state, logger);
  }
  void eval_start(State&, Logger&) override { first_of_evaluation_ = true; }
  // Evaluation data without images is skipped.
  void eval_before_forward(State& state, Logger& logger) override;
  void eval_after_forward(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void interval_passed(const State&) override { due_ = true; }
  void log_training(State& state, Logger& logger);
  void log_evaluation(State& state, Logger& logger);
  std::optional<LoggedImages> images_in(const State& state, const char* name) const;
  std::vector<LoggedMask> masks_in(const State& state) const;

  Options options_;
  bool due_ = true;                   // log images of the next batch
  bool first_ = false;                // the first microbatch of the attempt is still to come
  bool first_of_evaluation_ = false;  // the first batch of the evaluation is still to come
};

}  // namespace tutti
