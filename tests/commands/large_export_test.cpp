#include <c10/util/accumulate.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "commands/export.h"
#include "commands/loaded_model.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/formats/dtypes.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

constexpr uint64_t kMostBesideATensor = 1'000'000'000;

constexpr int kRanks = 8;  // a rank's share fits into the memory of most machines

// A GPT of 8.3 billion parameters, which have 99 GB with Adam's state.
constexpr const char* kLargeRecipe = R"(
run_name = "large"
seed = 1
[model]
kind = "gpt"
vocab_size = 50257
n_positions = 1024
n_embd = 4096
n_layer = 40
n_head = 32
[data.train]
kind = "synthetic"
targets = "sequence"
vocab = 50257
samples = 8
batch_size = 8
shape = [8]
[optimizer]
kind = "adam"
lr = 0.1
[sharding]
strategy = "full"
[train]
max_duration = "1ba"
)";

// A checkpoint in a file of holes.
class SparseCheckpoint {
 public:
  explicit SparseCheckpoint(const std::string& folder) {
    const Job job = single_process_job(recipe_of(kLargeRecipe), kRanks);
    const auto model = build_model(job.recipe.at("model"), job.spec(), job.make_model, 1 << 20);
    for (const auto& named : parameters(*model)) {
      const Shape shape = named.parameter->tensor.sizes().vec();
      add(std::string(kModelPrefix) + named.name, shape, at::kFloat);
      for (const char* moment : {"/exp_avg", "/exp_avg_sq"})
        add(std::string(kOptimizersPrefix) + named.name + moment, shape, at::kFloat);
      add(std::string(kOptimizersPrefix) + named.name + "/step", {}, at::kLong);
    }
    RunState state;
    state.run_name = "large";
    state.recipe = job.recipe_text;
    PosixDisk disk;
    write_manifest(disk, folder, {{file_}, state.to_json()});
    std::ofstream(folder + '/' + file_.file).close();
    std::filesystem::resize_file(folder + '/' + file_.file, file_.bytes);
  }

  uint64_t bytes() const { return file_.bytes; }
  uint64_t largest() const { return largest_; }

 private:
  void add(const std::string& name, const Shape& shape, at::ScalarType dtype) {
    file_.pieces.push_back({name, shape, Shape(shape.size(), 0), shape, dtype, {}, file_.bytes});
    const uint64_t bytes = contiguous_bytes(shape, dtype).value();
    file_.bytes += bytes;
    largest_ = std::max(largest_, bytes);
  }

  RankFile file_{"rank-0.h5", 0, 0, {}};
  uint64_t largest_ = 0;
};

// Scratch folders may lie in memory.
class DiskFolder {
 public:
  DiskFolder() { std::filesystem::create_directory(folder_); }
  ~DiskFolder() { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  const std::filesystem::path folder_ = std::filesystem::current_path() / "large_export";
};

uint64_t address_space() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Exports as under `ulimit -v`, and ends the process.
[[noreturn]] void export_within(uint64_t bytes, const ExportOptions& options) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
  try {
    export_text(options);
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(1);
  }
}

TEST(LargeExportTest, NeedsMemoryForOneTensor) {
  if (!is_nightly()) GTEST_SKIP() << "it writes 66 GB, one half after the other";
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer takes terabytes of addresses";
#endif
  const DiskFolder folder;
  const std::string checkpoint = folder.path("large");
  const SparseCheckpoint sparse(checkpoint);
  EXPECT_GT(sparse.bytes(), 98'000'000'000u);
  const uint64_t most = address_space() + sparse.largest() + kMostBesideATensor;
  const std::string hub = folder.path("hub"), torch = folder.path("large.pt");
  EXPECT_EXIT(export_within(most, {.path = checkpoint, .to_hf = hub}), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(std::filesystem::exists(hub + "/model.safetensors.index.json"));
  std::filesystem::remove_all(hub);
  EXPECT_EXIT(export_within(most, {.path = checkpoint, .to_torch = torch}), testing::ExitedWithCode(0), "");
  EXPECT_GT(std::filesystem::file_size(torch), 33'000'000'000u);
}

}  // namespace
}  // namespace tutti
