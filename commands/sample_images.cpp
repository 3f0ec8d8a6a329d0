#include "commands/sample_images.h"

#include <ATen/ATen.h>

#include <cmath>
#include <span>

#include "commands/loaded_model.h"
#include "commands/prediction_job.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/formats/png.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/replaced_file.h"
#include "models/diffusion/sampler.h"
#include "models/zoo/diffusion_unet.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

Setting option_key(const char* name, const std::string& value) { return {value, name, {"command line"}}; }

// One grey image, for a model that is built to fit its data.
class OneImage final : public Dataset {
 public:
  explicit OneImage(Shape shape) : shape_(std::move(shape)) {}
  int64_t size() const override { return 1; }
  SampleSpec spec() const override { return {{{"input", shape_}}, 0, {{"input", at::kFloat}}}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    Shape sizes{std::ssize(indices)};
    sizes.insert(sizes.end(), shape_.begin(), shape_.end());
    return TensorTree::Children{{"input", at::zeros(sizes)}};
  }
  uint64_t digest() const override { return 0; }

 private:
  Shape shape_;
};

// Of the recipe's images; their channels may be known by the weights alone.
Shape image_shape(const Setting& model, const Checkpoint& checkpoint) {
  const int64_t side = model.at("sample_size").integer();
  if (model.has("in_channels")) return {model.at("in_channels").integer(), side, side};
  const PosixDisk disk;
  const CheckpointTensors tensors(disk, checkpoint, kModelPrefix);
  for (const char* name : {"conv_out.bias", "conv_out.conv.bias"})
    if (tensors.contains(name)) return {tensors.at(name).shape.at(0), side, side};
  model.at("kind").fail("model.in_channels is needed: the weights do not show how many the images have");
}

bool is_png(const std::string& output) { return output.ends_with(".png"); }

// Fails before anything is computed.
void require_output(const SampleImagesOptions& options, const Shape& shape) {
  const Setting key = option_key("--output", options.output);
  if (!is_png(options.output) && !options.output.ends_with(".h5"))
    key.fail("expected the name of a .png or .h5 file");
  if (!PosixDisk().replaceable(options.output)) key.fail("it is not a regular file");
  if (is_png(options.output) && shape[0] != 1 && shape[0] != 3)
    key.fail("a .png has images of 1 or 3 channels, the model's have " + std::to_string(shape[0]) +
             "; a .h5 has them as numbers");
}

// Rows of images with a margin, on black: bytes [height, width, channels]. Small images are enlarged.
at::Tensor grid_of(const at::Tensor& images) {
  constexpr int64_t kLeastSide = 48, kMargin = 2;
  const at::Tensor bytes = ((images / 2 + 0.5).clamp(0, 1) * 255).round().to(at::kByte);
  const int64_t side = images.size(-1), times = (kLeastSide + side - 1) / side;
  const at::Tensor large = bytes.repeat_interleave(times, 2).repeat_interleave(times, 3);
  const int64_t columns = std::llround(std::ceil(std::sqrt(static_cast<double>(images.size(0)))));
  const int64_t rows = (images.size(0) + columns - 1) / columns, cell = side * times + kMargin;
  const at::Tensor grid =
      at::zeros({images.size(1), rows * cell + kMargin, columns * cell + kMargin}, at::kByte);
  for (int64_t i = 0; i < images.size(0); ++i)
    grid.narrow(1, i / columns * cell + kMargin, side * times)
        .narrow(2, i % columns * cell + kMargin, side * times)
        .copy_(large[i]);
  return grid.permute({1, 2, 0}).contiguous();
}

void write(const SampleImagesOptions& options, const at::Tensor& images) try {
  PosixDisk disk;
  if (!is_png(options.output)) {
    FreshFile fresh(disk, options.output);
    write_hdf5(disk, fresh.name(), {hdf5_array("images", images)});
    fresh.commit();
    return;
  }
  const at::Tensor grid = grid_of(images);
  const std::span pixels(grid.const_data_ptr<uint8_t>(), static_cast<std::size_t>(grid.numel()));
  replace_file(disk, options.output, png(pixels, grid.size(0), grid.size(1), grid.size(2)));
} catch (const OperatingError& error) {
  option_key("--output", options.output).fail(error);
}

// With the weights that predictions use.
at::Tensor images_of(LoadedModel& loaded, const SampleImagesOptions& options, const Shape& shape) {
  State& state = loaded.state;
  auto* model = dynamic_cast<DiffusionUnet*>(state.model.get());
  TUTTI_ASSERT(model != nullptr, "the model was made for another kind");
  if (const int64_t most = model->schedule().timesteps(); options.steps > most)
    option_key("--steps", std::to_string(options.steps))
        .fail("expected at most " + std::to_string(most) + ", the model's num_train_timesteps");
  const SamplingOptions sampling{
      .sampler = options.sampler == "ddpm" ? SamplerKind::kDdpm : SamplerKind::kDdim,
      .steps = options.steps,
      .samples = options.samples,
      .seed = options.seed};
  const EvaluationMode evaluating(*model);
  const AutocastScope autocast(state.precision.autocast, state.device);
  loaded.engine.run_event(Event::kPredictStart);
  const at::Tensor images =
      sampled(model->schedule(), sampling, shape, state.device.where,
              [model](const at::Tensor& x, const at::Tensor& t) { return model->predict(x, t); });
  loaded.engine.run_event(Event::kPredictEnd);
  return images;
}

}  // namespace

std::string sample_images(const SampleImagesOptions& options) try {
  const auto [checkpoint, recipe] = find_saved_run(options.path);
  const Setting& model = recipe.at("model");
  if (model.at("kind").text() != "diffusion_unet")
    option_key("--output", options.output)
        .fail("expected the run of a diffusion_unet; " + model.at("kind").text() +
              " draws no images, and of a language model a PROMPT is continued");
  const Shape shape = image_shape(model, checkpoint);
  require_output(options, shape);
  const Job job = job_with_data(recipe, std::make_shared<OneImage>(shape));
  LoadedModel loaded(job, checkpoint.folder);
  const std::string weights = loaded.load();
  write(options, images_of(loaded, options, shape));
  return weights + '\n' + std::to_string(options.samples) + " images by " + std::to_string(options.steps) +
         " steps of " + options.sampler + " written to " + options.output + '\n';
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
