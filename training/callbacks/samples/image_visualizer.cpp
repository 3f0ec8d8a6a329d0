#include "training/callbacks/samples/image_visualizer.h"

#include <sstream>
#include <utility>

#include "io/json/json_line.h"
#include "training/callbacks/options.h"
#include "training/loggers/logged_images.h"
#include "training/state.h"

namespace tutti {
namespace {

// Example: "input Float [8, 64], target Long [8]".
std::string describe(const TensorTree& tree) {
  std::ostringstream text;
  for (const auto& [name, tensor] : tree.leaves())
    text << (text.tellp() > 0 ? ", " : "") << (name.empty() ? "" : name + ' ')
         << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

const at::Tensor* tensor_in(const Batch& batch, const Setting& key) {
  const TensorTree* tensors = batch.find(key.text());
  return tensors && tensors->is_leaf() ? &tensors->tensor() : nullptr;
}

}  // namespace

std::optional<LoggedImages> ImageVisualizer::images_in(const State& state, const char* name) const {
  const at::Tensor* input = tensor_in(state.batch, options_.input_key);
  if (!input) return std::nullopt;
  auto images = images_of(name, *input, options_.num_images, options_.channels_last);
  if (images && options_.segmentation) images->masks = masks_in(state);
  return images;
}

std::vector<LoggedMask> ImageVisualizer::masks_in(const State& state) const {
  const at::Tensor* target = tensor_in(state.batch, options_.target_key);
  if (!target || !state.outputs.is_leaf()) return {};
  const at::Tensor& scores = state.outputs.tensor();
  const auto classes_of_scores = [this](const char* name, const at::Tensor& what) {
    return mask_of_scores(name, what, options_.num_images, options_.channels_last);
  };
  const auto prediction = classes_of_scores("prediction", scores);
  if (!prediction) return {};
  const auto classes = static_cast<int32_t>(scores.size(options_.channels_last ? -1 : 1));
  const auto truth = target->sizes() == scores.sizes()
                         ? classes_of_scores("ground_truth", *target)
                         : mask_of_classes("ground_truth", *target, options_.num_images, classes);
  return truth ? std::vector{*prediction, *truth} : std::vector<LoggedMask>();
}

// Runs on every rank, with or without a logger, so that all ranks fail alike.
void ImageVisualizer::log_training(State& state, Logger& logger) {
  if (!std::exchange(first_, false)) return;
  const auto images = images_in(state, "Images/Train");
  if (!images)
    options_.input_key.fail(std::string("expected images of 1 or 3 channels, ") +
                            (options_.channels_last ? "[N, H, W, C]" : "[N, C, H, W]") +
                            " or [N, H, W], in the batch, which is: " + describe(state.batch));
  if (options_.segmentation && images->masks.empty())
    options_.target_key.fail(
        "expected classes [N, H, W] in the batch, and scores of each as the model's outputs; the batch is: " +
        describe(state.batch) + "; the outputs are: " + describe(state.outputs));
  logger.log_images(*images);
}

void ImageVisualizer::log_evaluation(State& state, Logger& logger) {
  if (!std::exchange(first_of_evaluation_, false)) return;
  const auto images = images_in(state, "Images/Eval");
  if (images && (!options_.segmentation || !images->masks.empty())) logger.log_images(*images);
}

void ImageVisualizer::before_forward(State& state, Logger& logger) {
  if (!options_.segmentation) log_training(state, logger);
}

void ImageVisualizer::before_loss(State& state, Logger& logger) {
  if (options_.segmentation) log_training(state, logger);
}

void ImageVisualizer::eval_before_forward(State& state, Logger& logger) {
  if (!options_.segmentation) log_evaluation(state, logger);
}

void ImageVisualizer::eval_after_forward(State& state, Logger& logger) {
  if (options_.segmentation) log_evaluation(state, logger);
}

std::string ImageVisualizer::state() const { return json_line({{"due", int64_t{due_}}}); }

void ImageVisualizer::restore(const std::string& json) { due_ = json_number(json, "due") != 0; }

CallbackPtr ImageVisualizerOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ImageVisualizer>(
      interval, ImageVisualizer::Options{segmentation, num_images, channels_last, input_key, target_key});
}

}  // namespace tutti
