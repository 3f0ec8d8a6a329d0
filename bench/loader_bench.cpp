// Measures how fast batches are loaded: images that are cropped, flipped, resized and normalized, by the
// number of workers.
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include <optional>
#include <utility>

#include "actors/loader.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/image_transforms.h"
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

// Asks for batches, and ends both when it has them.
class Consumer final : public Actor {
 public:
  explicit Consumer(ActorId loader) : loader_(loader) {}
  void start(Context& context) override {
    context.send(loader_, Start{});
    context.send(loader_, Credit{kBatches});
  }
  void receive(Context& context, Envelope&) override {
    if (++received_ < kBatches) return;
    context.send(loader_, Stop{});
    context.stop();
  }

 private:
  ActorId loader_;
  int received_ = 0;
};

void load(const DatasetPtr& data, int threads) {
  ThreadScheduler scheduler;
  RingRecorder recorder;
  const ActorId loader = scheduler.reserve("loader", 0), consumer = scheduler.reserve("consumer", 0);
  const Sampler sampler({.samples = kBatchSamples, .global_batch = kBatchSamples});
  scheduler.install(loader, std::make_unique<Loader>(data, sampler, consumer, recorder,
                                                     threads > 1 ? start_workers(threads) : nullptr));
  scheduler.install(consumer, std::make_unique<Consumer>(loader));
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

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
