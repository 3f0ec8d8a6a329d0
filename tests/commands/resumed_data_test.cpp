#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "commands/local_train.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/recipe_catalogs.h"
#include "models/layers/linear.h"
#include "models/model.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/random.h"
#include "tests/data/readers/idx_text.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr const char* kIndex = "index";
constexpr int kMostRanks = 8;
constexpr int64_t kEpochs = 3;
constexpr int64_t kBatch = 8;  // a sample for each rank
const std::string kGolden = TUTTI_SOURCE_DIR "/tests/golden/";

// A dataset whose samples know their indices.
class Indexed final : public Dataset {
 public:
  explicit Indexed(DatasetPtr below) : below_(std::move(below)) {}
  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override {
    SampleSpec spec = below_->spec();
    spec.shapes[kIndex] = {};
    spec.dtypes[kIndex] = at::kLong;
    return spec;
  }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override {
    Batch batch = below_->get(indices, epoch);
    batch.set(kIndex, at::tensor(std::vector<int64_t>(indices.begin(), indices.end()), at::kLong));
    return batch;
  }
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed, epoch, position, shuffle);
  }
  uint64_t digest() const override { return below_->digest(); }

 private:
  DatasetPtr below_;
};

// Takes any sample.
class Indifferent final : public Model {
 public:
  Indifferent() : weight_(add_parameter("weight", {2}, constant_init(1.0))) {}
  TensorTree forward(const Batch&) override { return weight_.tensor; }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().square().mean(); }
  const char* kind() const override { return "Indifferent"; }
  std::vector<std::string> get_metrics(bool) const override { return {}; }

 private:
  Parameter& weight_;
};

struct Killed : OperatingError {
  Killed() : OperatingError("killed") {}
};

struct DataKind {
  const char* name;
  const char* model;  // that takes such samples
  std::string keys;   // of [data.train], besides the batch size; FOLDER stands for the test's folder
};

void write_files(const Scratch& scratch) {
  PosixDisk disk;
  write_hdf5(disk, scratch.path("a.h5"),
             {hdf5_array("input", at::rand({53, 4})), hdf5_array("target", at::arange(53).remainder(3))});
  write_text(scratch.path("a.txt"), std::string(500, 'a'));
  write_text(scratch.path("images"), idx_text({33, 2, 2}, std::string(132, 'x')));
  write_text(scratch.path("labels"), idx_text({33}, std::string(33, '\1')));
  std::string rows = "x,y\n";
  for (int i = 0; i < 37; ++i) rows += std::to_string(i * i) + ',' + std::to_string(i % 3) + '\n';
  write_text(scratch.path("a.csv"), rows);
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"text\": \"In the beginning, " + std::to_string(i * i * i) + "\"}\n";
  write_text(scratch.path("a.jsonl"), lines);
  std::filesystem::copy(kGolden + "mds/zstd", scratch.path("mds"), std::filesystem::copy_options::recursive);
  for (const char* name : {"420_19x37.jpg", "gray_19x37.png", "lossy_19x37.webp", "large_38x74.jpg"})
    for (const char* part : {"1", "2", "3", "4", "5"}) {
      std::filesystem::create_directories(scratch.path("photos") + '/' + part);
      std::filesystem::copy(kGolden + "images/" + name, scratch.path("photos") + '/' + part + '/' + name);
    }
}

const std::string kTexts =
    "kind = 'text'\npath = 'FOLDER/a.jsonl'\ntokenizer = '" + kGolden +
    "tokenizers/gpt2.json'\nadd_eos_token = false\ncache = 'FOLDER/cache'\nsequence_length = 8\n";
std::string streamed_texts(const std::string& command) {
  return "kind = 'text'\ncommand = \"" + command + "\"\ntokenizer = '" + kGolden +
         "tokenizers/gpt2.json'\nadd_eos_token = false\nsequence_length = 8\nshuffle_buffer = 10\n";
}
const std::string kCounter = "i=0; while :; do echo It counts from the beginning to $i; i=$((i+1)); done";
const std::string kOneSize = "[[data.train.transforms]]\nkind = 'random_resized_crop'\nsize = 8\n";

constexpr const char* kMlp = "kind = 'mlp'\n";
constexpr const char* kGpt = "kind = 'gpt'\nn_positions = 16\nvocab_size = 30000\n";

const DataKind kKinds[] = {
    {"hdf5", kMlp, "kind = 'hdf5'\npath = 'FOLDER/a.h5'\n"},
    {"numpy", kMlp,
     "kind = 'numpy'\npath = '" + kGolden +
         "numpy/stored.npz'\narrays = { input = 'wide', target = 'labels' }\n"},
    {"bytes", kGpt, "kind = 'bytes'\npath = 'FOLDER/a.txt'\nsequence_length = 9\n"},
    {"tokens", kGpt, "kind = 'tokens'\npath = 'FOLDER/a.txt'\ndtype = 'uint16'\nsequence_length = 6\n"},
    {"text", kGpt, kTexts},
    {"packed_text", kGpt, kTexts + "packing = 'first_fit'\n"},
    {"counted_stream", kGpt, streamed_texts("cat FOLDER/a.jsonl")},
    {"stream", kGpt, streamed_texts("cat FOLDER/a.jsonl") + "epoch_samples = 41\n"},
    {"endless_stream", kGpt, streamed_texts(kCounter) + "epoch_samples = 41\nlines = 'text'\n"},
    {"packed_stream", kGpt, streamed_texts("cat FOLDER/a.jsonl") + "packing = 'first_fit'\n"},
    {"image_stream", kMlp,
     "kind = 'webdataset'\ncommand = 'cat " + kGolden +
         "images/shard-*.tar'\nepoch_samples = 20\nshuffle_buffer = 8\nnum_classes = 4\nscale = 1\n" +
         kOneSize},
    {"idx", kMlp, "kind = 'idx'\nimages = 'FOLDER/images'\nlabels = 'FOLDER/labels'\nscale = 1\n"},
    {"synthetic", kMlp, "kind = 'synthetic'\nsamples = 47\nshape = [2]\n"},
    {"image_folder", kMlp, "kind = 'image_folder'\npath = 'FOLDER/photos'\nscale = 1\n" + kOneSize},
    {"webdataset", kMlp, "kind = 'webdataset'\npath = '" + kGolden + "images'\nscale = 1\n" + kOneSize},
    {"csv", kMlp, "kind = 'csv'\npath = 'FOLDER/a.csv'\ntarget = 'y'\nnormalize = true\n"},
    {"csv_split", kMlp,
     "kind = 'csv'\npath = 'FOLDER/a.csv'\ntarget = 'y'\nnormalize = true\n[data.eval]\nsplit = 0.3\n"},
    {"photos_split", kMlp,
     "kind = 'image_folder'\npath = 'FOLDER/photos'\nscale = 1\n" + kOneSize +
         "[data.eval]\nsplit = 0.2\n[[data.eval.transforms]]\nkind = 'resize'\nsize = [8, 8]\n"},
    {"balanced", kMlp, "kind = 'hdf5'\npath = 'FOLDER/a.h5'\nsampler = 'balanced'\n"},
    {"mds", kMlp,
     "kind = 'mds'\npath = 'FOLDER/mds'\nshuffle_block = 2\nscale = 1\ncolumns = { input = 'png', target = "
     "'label' }\n" +
         kOneSize},
    {"mixture", kMlp,
     "kind = 'mixture'\nsamples = 41\n"
     "[[data.train.sources]]\nkind = 'synthetic'\nsamples = 5\nshape = [2]\nweight = 2\n"
     "[[data.train.sources]]\nkind = 'synthetic'\nsamples = 40\nshape = [2]\nweight = 1\n"}};

class ResumedData : public testing::TestWithParam<DataKind> {
 protected:
  void SetUp() override { write_files(scratch_); }

  Setting recipe(bool shuffle, const std::string& interval) const {
    std::string keys = GetParam().keys;
    for (std::size_t at = keys.find("FOLDER"); at != std::string::npos; at = keys.find("FOLDER"))
      keys.replace(at, 6, scratch_.path());
    const std::string text =
        "seed = 9\n[model]\n" + std::string(GetParam().model) +
        "[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '" + std::to_string(kEpochs) +
        "ep'\n[checkpoint]\ninterval = '" + interval +
        "'\n[data.train]\nbatch_size = 8\nshuffle = " + (shuffle ? "true\n" : "false\n") + keys;
    return resolve_recipe(parse_recipe(text, "r.toml"));
  }

  // Trains with so many ranks until step `kill`, or to the end; notes the samples of each step.
  bool attempt(const Setting& recipe, int ranks, int64_t kill) {
    LocalRunOptions options{.ranks = ranks, .run_dir = scratch_.path("run"), .resume = "auto"};
    std::map<int64_t, std::vector<int64_t>> seen;
    options.prepare = [&](Job& job) {
      data_ = job.train = std::make_shared<const Indexed>(job.train);
      for (auto& evaluator : job.evaluators) evaluator.data = std::make_shared<const Indexed>(evaluator.data);
      job.make_model = [](const Setting&, const SampleSpec&) { return std::make_shared<Indifferent>(); };
      job.before_step = [&](int, int64_t step, const Trainee&, const Batch& batch) {
        if (step == kill) throw Killed();
        const at::Tensor indices = batch[kIndex].contiguous();
        const auto* first = indices.const_data_ptr<int64_t>();
        const std::lock_guard lock(mutex_);
        seen[step].insert(seen[step].end(), first, first + indices.numel());
      };
    };
    bool ended = true;
    try {
      train_in_one_process(recipe, options);
    } catch (const std::exception& error) {
      ended = false;
      if (std::string(error.what()).find("killed") == std::string::npos) throw;
    }
    for (auto& [step, indices] : seen) steps_[step] = std::move(indices);
    return ended;
  }

  // Of all steps, epoch by epoch: the samples of the order that seed and epoch give, each once.
  void expect_all_once(bool shuffle) const {
    const int64_t size = data_->size(), of_epoch = (size + kBatch - 1) / kBatch;
    ASSERT_EQ(std::ssize(steps_), kEpochs * of_epoch);
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      std::vector<int64_t> found, expected;
      for (int64_t batch = 0; batch < of_epoch; ++batch) {
        const auto& step = steps_.at(epoch * of_epoch + batch + 1);
        found.insert(found.end(), step.begin(), step.end());
      }
      for (int64_t position = 0; position < size; ++position)
        expected.push_back(data_->order(9, epoch, position, shuffle));
      std::ranges::sort(found);
      std::ranges::sort(expected);
      EXPECT_EQ(found, expected) << "epoch " << epoch;
    }
  }

  Scratch scratch_;
  DatasetPtr data_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<int64_t>> steps_;  // the samples of each, all ranks together
};

TEST_P(ResumedData, NoSampleIsLostOrRepeatedOverKillsAndOtherRanks) {
  const int kills = is_nightly() ? 200 : 4;
  RandomKey draws = RandomKey(3, GetParam().name);
  for (int killed = 0, run = 0; killed < kills; ++run) {
    draws = draws.fold_in(1);
    const bool shuffle = draws.bits() % 4 > 0;
    const Setting of_run = recipe(shuffle, draws.bits() % 3 > 0 ? "1ba" : "2ba");
    std::filesystem::remove_all(scratch_.path("run"));
    steps_.clear();
    for (;;) {
      draws = draws.fold_in(2);
      const int ranks = 1 + static_cast<int>(draws.bits() % kMostRanks);
      const int64_t last = steps_.empty() ? 0 : steps_.rbegin()->first;
      const int64_t kill = killed < kills ? last + 1 + static_cast<int64_t>(draws.fold_in(3).bits() % 5) : -1;
      if (attempt(of_run, ranks, kill)) break;
      ++killed;
    }
    expect_all_once(shuffle);
  }
}

// Shards would be windowed anew in the middle of an epoch.
TEST(ResumedOrder, OfAnotherBlockOfShardsIsRefused) {
  const Scratch scratch;
  const std::string mds =
      "kind = 'mds'\npath = '" + kGolden +
      "mds/all'\ncolumns = { input = 'array_float16', target = 'label' }\nshuffle_block = ";
  const auto train = [&](const std::string& data, const char* duration) {
    LocalRunOptions options{.ranks = 1, .run_dir = scratch.path("run"), .resume = "auto"};
    options.prepare = [](Job& job) {
      job.make_model = [](const Setting&, const SampleSpec&) { return std::make_shared<Indifferent>(); };
    };
    train_in_one_process(
        resolve_recipe(parse_recipe("[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\n"
                                    "[train]\nmax_duration = '" +
                                        std::string(duration) + "'\n[data.train]\nbatch_size = 1\n" + data,
                                    "r.toml")),
        options);
  };
  train(mds + "2\n", "1ba");
  EXPECT_THAT(message_of<UserError>([&] { train(mds + "3\n", "2ba"); }),
              testing::HasSubstr("it was trained with data.train.shuffle_block = 2, which is not so"));
  train(mds + "2\n", "2ba");
  std::filesystem::remove_all(scratch.path("run"));
  const std::string mixture = "kind = 'mixture'\n[[data.train.sources]]\n" + mds;
  train(mixture + "2\n", "1ba");
  EXPECT_THAT(message_of<UserError>([&] { train(mixture + "3\n", "2ba"); }),
              testing::HasSubstr("shuffle_block = 2, which is not so"));
}

INSTANTIATE_TEST_SUITE_P(Kind, ResumedData, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tutti
