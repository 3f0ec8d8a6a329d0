// Measures how fast batches are loaded: images that are cropped, flipped, resized and normalized, by the
// number of workers. TUTTI_BENCH_IMAGES names an image folder, whose files are then decoded, too: see
// image_folder.py.
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "actors/loader.h"
#include "data/readers/image_files.h"
#include "data/readers/image_folder.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/stored_images.h"
#include "data/transforms/tensor_transforms.h"
#include "runtime/actor/scheduler.h"
#include "tensors/meter.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

constexpr int kBatches = 8;
constexpr int64_t kBatchSamples = 64;

// Images of edge + 32 pixels, from which squares of `edge` are cut and made smaller by a quarter.
DatasetPtr augmented_images(int64_t edge) {
  const at::Tensor pixels = at::randint(256, {kBatchSamples, edge + 32, edge + 32, 3}).to(at::kByte);
  const TensorTree::Children arrays = {{"input", pixels}, {"target", at::zeros({kBatchSamples}, at::kLong)}};
  Transforms transforms;
  append(transforms, "random_crop", random_crop_transform({.size = {edge, edge}}));
  append(transforms, "flip", flip_transform(0.5));
  append(transforms, "resize", resize_transform({.smaller_edge = edge * 3 / 4}));
  append(transforms, "to_tensor", to_tensor_transform());
  append(transforms, "normalize", normalize_transform({0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}));
  return std::make_shared<const TransformedDataset>(std::make_shared<const TensorDataset>(arrays, 10),
                                                    std::move(transforms), "");
}

// What ImageNet's networks are trained with.
DatasetPtr decoded_images(const std::string& folder) {
  ImageFolderOptions options;
  options.path = folder;
  Transforms transforms;
  append(transforms, "random_resized_crop", random_resized_crop_transform({.size = {224, 224}}));
  append(transforms, "flip", flip_transform(0.5));
  append(transforms, "numbers",
         pixels_to_floats_transform({.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}));
  return std::make_shared<const TransformedDataset>(
      std::make_shared<const ImageFiles>(open_image_folder(options), options), std::move(transforms), "");
}

// Asks for batches, and ends both when it has them.
class Consumer final : public Actor {
 public:
  Consumer(ActorId loader, int64_t batches) : loader_(loader), batches_(batches) {}
  void start(Context& context) override {
    context.send(loader_, Start{});
    context.send(loader_, Credit{static_cast<int>(batches_)});
  }
  void receive(Context& context, Envelope&) override {
    if (++received_ < batches_) return;
    context.send(loader_, Stop{});
    context.stop();
  }

 private:
  ActorId loader_;
  int64_t batches_;
  int64_t received_ = 0;
};

void load(const DatasetPtr& data, int threads, int64_t batches = kBatches) {
  ThreadScheduler scheduler;
  RingRecorder recorder;
  const ActorId loader = scheduler.reserve("loader", 0), consumer = scheduler.reserve("consumer", 0);
  const Sampler sampler({.samples = data->size(),
                         .global_batch = kBatchSamples,
                         .loading = {.shuffle = true, .drop_last = true}});
  scheduler.install(loader, std::make_unique<Loader>(data, sampler, consumer, recorder,
                                                     threads > 1 ? start_workers(threads) : nullptr));
  scheduler.install(consumer, std::make_unique<Consumer>(loader, batches));
  scheduler.run();
}

void batches_loaded(benchmark::State& state) {
  Meter::install();
  set_compute_threads(1);
  const DatasetPtr data = augmented_images(state.range(0));
  for (auto _ : state) load(data, static_cast<int>(state.range(1)));
  state.SetItemsProcessed(state.iterations() * kBatches * kBatchSamples);
}
BENCHMARK(batches_loaded)->ArgNames({"edge", "workers"})->ArgsProduct({{32, 224}, {0, 2}})->UseRealTime();

void files_decoded(benchmark::State& state) {
  const char* folder = std::getenv("TUTTI_BENCH_IMAGES");
  if (!folder) return state.SkipWithError("TUTTI_BENCH_IMAGES is not set");
  Meter::install();
  set_compute_threads(1);
  const DatasetPtr data = decoded_images(folder);
  const int64_t batches = data->size() / kBatchSamples;
  for (auto _ : state) load(data, static_cast<int>(state.range(0)), batches);
  state.SetItemsProcessed(state.iterations() * batches * kBatchSamples);
}
BENCHMARK(files_decoded)->ArgNames({"workers"})->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
