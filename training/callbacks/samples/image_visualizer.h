#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "training/callbacks/writers/file_names.h"
#include "training/engine/callback.h"

namespace tutti {

// Logs images of the first microbatch of the first batch, and of each that follows the end of an `interval`,
// as "Images/Train", and of the first batch of every evaluation as "Images/Eval". In the mode "segmentation"
// with the classes of their pixels, as the model sees them and as they are: the masks "prediction" and
// "ground_truth", where targets below 0 are a class of their own. composer.callbacks.ImageVisualizer.
class ImageVisualizer final : public Callback {
 public:
  struct Options {
    bool segmentation = false;   // the model's outputs are scores [N, C, H, W]
    int64_t num_images = 8;      // at most
    bool channels_last = false;  // of images and scores: [N, H, W, C]
    // Where images and targets are in a batch; blamed for errors. Targets are classes [N, H, W], or a part of
    // each class, shaped as the scores.
    Setting input_key = {std::string("input"), "input_key", {}};
    Setting target_key = {std::string("target"), "target_key", {}};
  };

  ImageVisualizer(const Time& interval, Options options)
      : interval_(interval), options_(std::move(options)) {}

  std::string name() const override { return "ImageVisualizer"; }
  void after_dataloader(State&, Logger&) override { first_ = due_; }
  // Throw UserError where the training batch has no images, or no targets.
  void before_forward(State& state, Logger& logger) override;
  void before_loss(State& state, Logger& logger) override;
  void batch_end(State& state, Logger&) override { due_ = interval_.at_batch_end(state); }
  void epoch_end(State& state, Logger&) override { due_ |= interval_.at_epoch_end(state); }
  void iteration_end(State& state, Logger&) override { due_ |= interval_.at_iteration_end(state); }
  void eval_start(State&, Logger&) override { first_of_evaluation_ = true; }
  // Data without images, which an evaluator may have, are passed over.
  void eval_before_forward(State& state, Logger& logger) override;
  void eval_after_forward(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void log_training(State& state, Logger& logger);
  void log_evaluation(State& state, Logger& logger);
  std::optional<LoggedImages> images_in(const State& state, const char* name) const;
  std::vector<LoggedMask> masks_in(const State& state) const;

  Due interval_;
  Options options_;
  bool due_ = true;                   // images of the next batch are to be logged
  bool first_ = false;                // of the attempt at a step: they are still to come
  bool first_of_evaluation_ = false;  // so are those of the evaluation
};

}  // namespace tutti
