#include "commands/dry_run.h"

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "commands/local_train.h"
#include "io/formats/run_metrics.h"
#include "io/run_paths.h"
#include "runtime/error.h"
#include "training/engine/callback.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "tutti-check-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw OperatingError(path_ + ": cannot be created");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class StopAfter final : public Callback {
 public:
  explicit StopAfter(int64_t steps) : steps_(steps) {}
  std::string name() const override { return "StopAfter"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch >= steps_) state.stop_training();
  }

 private:
  int64_t steps_;
};

void set(Setting& section, const char* key, Setting::Value value) {
  section.find(key)->value = std::move(value);
}

// Starts from nothing, writes nothing of the user's, and evaluates on one batch.
void shorten(Setting& recipe) {
  set(*recipe.find("journal"), "level", std::string("off"));
  Setting& checkpoint = *recipe.find("checkpoint");
  set(checkpoint, "interval", std::string("0ba"));
  set(checkpoint, "save_ignore_keys", Setting::Array{Setting(std::string("*"), "", {})});
  for (const char* absent : {"save_folder", "resume", "best"}) set(checkpoint, absent, std::monostate());
  set(checkpoint, "autoresume", false);
  for (const char* list : {"loggers", "callbacks"}) set(recipe, list, Setting::Array());
  if (Setting& eval = *recipe.find("data")->find("eval"); eval.is_table())
    set(eval, "subset_num_batches", int64_t{1});
  for (Setting& evaluator : std::get<Setting::Array>(recipe.find("evaluators")->value))
    set(evaluator, "subset_num_batches", int64_t{1});
}

}  // namespace

TriedStep try_steps(Setting recipe, int ranks, int steps) {
  const TemporaryFolder folder;
  shorten(recipe);
  LocalRunOptions options;
  options.ranks = ranks;
  options.run_dir = folder.path();
  options.live = options.quiet = true;
  options.prepare = [steps](Job& job) {
    job.listeners = [steps](int) {
      Engine::Options listeners;
      listeners.callbacks.push_back(std::make_shared<StopAfter>(steps));
      return listeners;
    };
  };
  train_in_one_process(recipe, options);
  const RunMetrics metrics = RunMetrics::read(folder.path() + '/' + kMetricsFile);
  return {.steps = steps,
          .loss = metrics.figure("loss"),
          .ms = metrics.figure("step_ms") / ranks,
          .memory_mb = metrics.figure("memory_peak_mb"),
          .grad_accum = static_cast<int64_t>(metrics.figure("grad_accum"))};
}

}  // namespace tutti
