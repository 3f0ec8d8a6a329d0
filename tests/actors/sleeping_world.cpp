#include "tests/actors/sleeping_world.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "collectives/local/group.h"
#include "collectives/local/transport.h"
#include "job/recipe_catalogs.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/actor/scheduler.h"
#include "runtime/transport.h"

namespace tutti {
namespace {

class SleepingModel final : public Model {
 public:
  explicit SleepingModel(const SleepingWorld& world)
      : world_(world), weight_(add_parameter("weight", {}, fill())) {}
  TensorTree forward(const Batch& batch) override {
    std::this_thread::sleep_for(world_.forward);
    const double poison = step_ == world_.poisoned_step ? NAN : 1.0;
    at::Tensor loss = batch["input"].sum() * weight_.tensor * poison;
    if (step_++ == world_.steep_step) loss = loss + (weight_.tensor - weight_.tensor.detach()).sqrt();
    return loss;
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor(); }
  const char* kind() const override { return "SleepingModel"; }

 private:
  static Init fill() {
    return [](at::Tensor& tensor, at::Generator) { tensor.fill_(1.0); };
  }
  const SleepingWorld& world_;
  int step_ = 0;
  Parameter& weight_;
};

class SlowDataset final : public Dataset {
 public:
  explicit SlowDataset(Nanoseconds sleep) : sleep_(sleep) {}
  int64_t size() const override { return 8; }
  SampleSpec spec() const override { return {{{"input", {1}}}, 0}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    std::this_thread::sleep_for(sleep_);
    return TensorTree::Children{{"input", at::zeros({static_cast<int64_t>(indices.size()), 1})}};
  }
  uint64_t digest() const override { return 1; }

 private:
  Nanoseconds sleep_;
};

class SlowFile final : public WritableFile {
 public:
  SlowFile(std::unique_ptr<WritableFile> file, Nanoseconds sleep) : file_(std::move(file)), sleep_(sleep) {}
  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    file_->write_at(offset, bytes);
  }
  void append(std::span<const std::byte> bytes) override { file_->append(bytes); }
  void sync() override {
    std::this_thread::sleep_for(sleep_);
    file_->sync();
  }
  void close() override { file_->close(); }

 private:
  std::unique_ptr<WritableFile> file_;
  Nanoseconds sleep_;
};

// Slow where a rank writes its pieces, and where these are published.
class SlowDisk final : public PosixDisk {
 public:
  SlowDisk(Nanoseconds writing, Nanoseconds publishing) : writing_(writing), publishing_(publishing) {}
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    auto file = PosixDisk::open(path, truncate);
    if (path.find("rank-") != std::string::npos) {
      most_unpublished = std::max<int>(most_unpublished, ++unpublished_);
      return std::make_unique<SlowFile>(std::move(file), writing_);
    }
    if (path.find("manifest") == std::string::npos) return file;
    return std::make_unique<SlowFile>(std::move(file), publishing_);
  }
  void rename(const std::string& from, const std::string& to) override {
    PosixDisk::rename(from, to);
    if (from.find("/.ep") != std::string::npos) --unpublished_;
  }

  int most_unpublished = 0;

 private:
  Nanoseconds writing_, publishing_;
  std::atomic<int> unpublished_ = 0;
};

std::vector<double> commits_apart_ms(const Recorder& recorder) {
  std::vector<double> apart;
  TimePoint before = kNever;
  for (const auto& one : recorder.last(100000)) {
    if (one.kind != TraceKind::kCommitted) continue;
    if (before != kNever) apart.push_back(milliseconds(one.time - before));
    before = one.time;
  }
  return apart;
}

}  // namespace

Setting recipe_of(const std::string& toml) { return resolve_recipe(parse_recipe(toml, "test.toml")); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

SleepingWorld::Figures SleepingWorld::run() const {
  const Scratch folder;
  Job job;
  job.recipe = recipe_of(
      "seed = 1\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nbatch_size = 2\n"
      "[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\nmax_duration = '" +
      std::to_string(steps) + "ba'\n[checkpoint]\ninterval = '" + std::to_string(checkpoint_every) + "ba'\n");
  job.settings = RunSettings::read(job.recipe);
  job.run_dir = folder.path();
  job.checkpoints = folder.path("checkpoints");
  job.train = std::make_shared<SlowDataset>(loading);
  job.global_batch = 2;
  job.make_model = [this](const Setting&, const SampleSpec&) {
    return std::make_shared<SleepingModel>(*this);
  };

  const auto disk = std::make_shared<SlowDisk>(writing, publishing);
  RankEnvironment environment;
  environment.groups = {LocalFabric::make(1)->group(0)};
  environment.transport = LocalNetwork(1).transport(0);
  environment.disk = disk;
  environment.recorder = std::make_shared<RingRecorder>(100000);
  ThreadScheduler scheduler;
  add_rank(scheduler, job, environment);
  scheduler.run();
  return {commits_apart_ms(*environment.recorder), disk->most_unpublished};
}

}  // namespace tutti
