#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/inspect.h"
#include "runtime/disk.h"
#include "sim/local_run.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

// 4 batches an epoch, the last of them short. As much as can be had at once.
constexpr const char* kEverything = R"(
seed = 5
[data.train]
kind = "synthetic"
samples = 90
batch_size = 24
shuffle = true
[data.eval]
kind = "synthetic"
samples = 30
[[evaluators]]
label = "often"
kind = "synthetic"
samples = 50
subset_num_batches = 1
eval_interval = "3ba"
[optimizer]
kind = "decoupled_adamw"
lr = 0.01
no_decay = ["*.bias"]
[checkpoint]
interval = "1ba"
[precision]
init_scale = 1e6
growth_interval = 3
[[callbacks]]
kind = "lr_monitor"
[[callbacks]]
kind = "optimizer_monitor"
batch_log_interval = 3
[[callbacks]]
kind = "activation_monitor"
interval = "2ba"
[[callbacks]]
kind = "early_stopper"
monitor = "CrossEntropy"
comp = "less"
patience = "2ep"
[[callbacks]]
kind = "threshold_stopper"
monitor = "CrossEntropy"
comp = "less"
threshold = 0.0
[[loggers]]
kind = "csv"
[train]
max_duration = "3ep"
precision = "amp_fp16"
grad_accum = [[0, 1], [2, 3], [7, 2]]
)";

constexpr const char* kImages = R"(
[model]
kind = "resnet_cifar"
width = 2
[scheduler]
kind = "reduce_lr_on_plateau"
monitor = "metrics/often/CrossEntropy"
patience = 0
threshold = 0.5
factor = 0.5
[[callbacks]]
kind = "image_visualizer"
interval = "2ba"
)";

constexpr const char* kText = R"(
[model]
kind = "gpt"
n_layer = 1
n_head = 2
n_embd = 8
n_positions = 8
dropout = 0.2
[scheduler]
kind = "linear_with_warmup"
t_warmup = "2ba"
[[callbacks]]
kind = "generate"
prompts = ["ab", [1, 2]]
interval = "2ba"
max_new_tokens = 2
)";

std::string with_samples(std::string recipe, const std::string& samples) {
  const std::string heading = "kind = \"synthetic\"\n";
  for (auto at = recipe.find(heading); at != std::string::npos; at = recipe.find(heading, at + 1))
    recipe.insert(at + heading.size(), samples);
  return recipe;
}

std::string images() { return with_samples(kEverything, "shape = [3, 8, 8]\n") + kImages; }
std::string text() {
  std::string recipe = with_samples(kEverything, "shape = [8]\ntargets = \"sequence\"\n") + kText;
  for (auto at = recipe.find("\"CrossEntropy\""); at != std::string::npos;
       at = recipe.find("\"CrossEntropy\""))
    recipe.replace(at + 1, 0, "Language");
  return recipe;
}

// Changes the rate by what it has seen; half of that is a number, half a tensor.
class SteeringByLoss final : public Algorithm {
 public:
  std::string name() const override { return "SteeringByLoss"; }
  bool match(Event event, const State&) const override { return event == Event::kBatchEnd; }
  void apply(Event, State& state, Logger& logger) override {
    ++steps_;
    sum_.add_(state.train_loss);
    logger.log_metrics({{"steering/sum", sum_.item<double>()}, {"steering/steps", double(steps_)}});
  }
  std::string state() const override { return std::to_string(steps_); }
  void restore(const std::string& text) override { steps_ = std::stoi(text); }
  NamedTensors state_tensors() override { return {{"sum", sum_}}; }

 private:
  int steps_ = 0;
  at::Tensor sum_ = at::zeros({1}, at::kDouble);
};

void train_with_all(const std::string& recipe, const std::string& run_dir, const std::string& resume = "") {
  LocalRunOptions options;
  options.ranks = 2;
  options.quiet = true;
  options.run_dir = run_dir;
  options.resume = resume;
  options.prepare = [](Job& job) {
    job.listeners = [](int) {
      Engine::Options listeners;
      listeners.algorithms = {std::make_shared<SteeringByLoss>()};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(recipe), options);
}

// Of metrics.jsonl, those after the step, without what is measured of time and memory.
std::vector<std::string> lines_after(const std::string& run_dir, int64_t step) {
  std::vector<std::string> found;
  std::istringstream all(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(all, line);) {
    auto fields = nlohmann::ordered_json::parse(line);
    for (const char* measured : {"step_ms", "samples_per_s", "memory_peak_mb", "since_start_s"})
      fields.erase(measured);
    if (fields["step"].get<int64_t>() > step) found.push_back(fields.dump());
  }
  return found;
}

std::vector<std::string> logged_after(const std::string& run_dir, int64_t step) {
  std::vector<std::string> found;
  std::istringstream all(read_text(run_dir + "/metrics-rank0.csv"));
  for (std::string line; std::getline(all, line);)
    if (std::isdigit(line[0]) && std::stoll(line) > step && line.find("time/") == std::string::npos)
      found.push_back(line);
  return found;
}

class ResumeTest : public testing::TestWithParam<std::string (*)()> {};

TEST_P(ResumeTest, AfterAnyStepTheRunIsTheOneThatWentOn) {
  const std::string recipe = GetParam()();
  const Scratch folder;
  const std::string whole = folder.path("whole");
  train_with_all(recipe, whole);
  const auto checkpoints = PosixDisk().list(whole + "/checkpoints");
  int resumed = 0;
  for (const auto& name : checkpoints) {
    if (!name.starts_with("ep")) continue;
    const int64_t step = std::stoll(name.substr(name.find("ba") + 2));
    const std::string run = folder.path("from-" + name);
    train_with_all(recipe, run, whole + "/checkpoints/" + name);
    EXPECT_EQ(lines_after(run, step), lines_after(whole, step)) << name;
    EXPECT_EQ(logged_after(run, step), logged_after(whole, step)) << name;
    EXPECT_EQ(inspect_digest(run), inspect_digest(whole)) << name;
    ++resumed;
  }
  EXPECT_GE(resumed, 12);
  EXPECT_GT(logged_after(whole, 0).size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(WithEverything, ResumeTest, testing::Values(images, text));

}  // namespace
}  // namespace tutti
