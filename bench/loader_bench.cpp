// Measures how fast batches are loaded: images that are cropped, flipped, resized and normalized, by the
// number of workers. TUTTI_BENCH_IMAGES names an image folder, whose files are then decoded, too: see
// image_folder.py; TUTTI_BENCH_MDS an MDS dataset of JPEGs ("image", "label") or of tokens: see mds.py.
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
#include "data/readers/mds_dataset.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/token_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/stored_images.h"
#include "data/transforms/tensor_transforms.h"
#include "runtime/actor/scheduler.h"
#include "tensors/memory/meter.h"
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
DatasetPtr augmented(DatasetPtr images) {
  Transforms transforms;
  append(transforms, "random_resized_crop", random_resized_crop_transform({.size = {224, 224}}));
  append(transforms, "flip", flip_transform(0.5));
  append(transforms, "numbers",
         pixels_to_floats_transform({.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}));
  return std::make_shared<const TransformedDataset>(std::move(images), std::move(transforms), "");
}

DatasetPtr decoded_images(const std::string& folder) {
  ImageFolderOptions options;
  options.path = folder;
  return augmented(std::make_shared<const ImageFiles>(open_image_folder(options), options));
}

DatasetPtr mds_samples(const std::string& folder, bool are_images) {
  const auto text = [](const char* name) { return Setting(name, "", {}); };
  Setting::Table columns = {{"input", text(are_images ? "image" : "tokens")}};
  if (are_images) columns.emplace_back("target", text("label"));
  MdsOptions options;
  options.path = folder;
  options.columns = Setting(columns, "", {});
  options.num_classes = int64_t{1} << 20;
  DatasetPtr samples = open_mds(options, kIgnoredTarget);
  return are_images ? augmented(samples) : samples;
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
  scheduler.install(loader, std::make_unique<Loader>(
                                data, [&](const RankTopology&) { return sampler; }, consumer, recorder,
                                threads > 1 ? start_workers(threads) : nullptr));
  scheduler.install(consumer, std::make_unique<Consumer>(loader, batches));
  scheduler.post(loader, Join{});
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

// Loads an epoch of the dataset in the folder that a variable names.
template <class Open>
void epochs_loaded(benchmark::State& state, const char* variable, const Open& open) {
  const char* folder = std::getenv(variable);
  if (!folder) return state.SkipWithError("a folder's variable is not set");
  Meter::install();
  set_compute_threads(1);
  const DatasetPtr data = open(folder);
  const int64_t batches = data->size() / kBatchSamples;
  for (auto _ : state) load(data, static_cast<int>(state.range(0)), batches);
  state.SetItemsProcessed(state.iterations() * batches * kBatchSamples);
}

void files_decoded(benchmark::State& state) { epochs_loaded(state, "TUTTI_BENCH_IMAGES", decoded_images); }
void mds_tokens(benchmark::State& state) {
  epochs_loaded(state, "TUTTI_BENCH_MDS", [](const char* folder) { return mds_samples(folder, false); });
}
void token_file(benchmark::State& state) {
  epochs_loaded(state, "TUTTI_BENCH_TOKENS", [](const char* path) -> DatasetPtr {
    return std::make_shared<const TokenDataset>(
        TokenDataset::Options{.path = path, .format = TokenFormat::kUint16, .sequence_length = 1024});
  });
}
void mds_images(benchmark::State& state) {
  epochs_loaded(state, "TUTTI_BENCH_MDS", [](const char* folder) { return mds_samples(folder, true); });
}
BENCHMARK(token_file)->ArgNames({"workers"})->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(mds_tokens)->ArgNames({"workers"})->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(mds_images)->ArgNames({"workers"})->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(files_decoded)->ArgNames({"workers"})->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
