// Optimizers, number formats, evaluation, callbacks and prediction on the test device.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>

#include "commands/check.h"
#include "commands/predict.h"
#include "io/hdf5/hdf5.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/scratch.h"
#include "training/loggers/logger_destination.h"
#include "training/metrics/factory.h"
#include "training/metrics/options.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Case {
  const char* name;
  DeviceRun run;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::string mlp_with(const std::string& optimizer) {
  return replaced(kSmallMlp, "kind = 'adamw'\nlr = 0.01\n", optimizer) + steps(4);
}

const std::string kMetrics =
    "[[data.eval.metrics]]\nkind = 'MulticlassAccuracy'\ntop_k = 2\n"
    "[[data.eval.metrics]]\nkind = 'MulticlassAccuracy'\naverage = 'macro'\nnum_classes = 10\nname = "
    "'macro'\n"
    "[[data.eval.metrics]]\nkind = 'CrossEntropy'\n"
    "[[data.eval.metrics]]\nkind = 'LossMetric'\nloss = 'soft_cross_entropy'\n";

// A batch of the training and one of the evaluation that are too short for four ranks.
std::string short_batches() {
  std::string recipe = replaced(kSmallMlp, "samples = 100", "samples = 22\ndrop_last = false");
  return replaced(recipe, "samples = 30\nbatch_size = 12", "samples = 5\nbatch_size = 4") + steps(4);
}

// The evaluation has images of another size.
std::string other_images() {
  return replaced(kSmallResnet + steps(3), "batch_size = 8\nshape = [3, 8, 8]\n[optimizer]",
                  "batch_size = 8\nshape = [3, 12, 12]\n[optimizer]");
}

// A program of torch.export.
std::string exported(const std::string& train) {
  return "seed = 5\n[model]\nkind = 'exported'\npath = '" TUTTI_SOURCE_DIR
         "/examples/data/digits_net.pt2'\n[data.train]\nkind = 'synthetic'\nsamples = 48\nbatch_size = "
         "16\nshape = "
         "[1, 8, 8]\n[optimizer]\nkind = 'adamw'\nlr = 0.01\n[train]\n" +
         train;
}

// A file of TorchScript.
std::string script(const std::string& name, const std::string& shape, const std::string& train) {
  return "seed = 5\n[model]\nkind = 'torchscript'\npath = '" TUTTI_SOURCE_DIR "/tests/golden/scripts/" +
         name +
         ".pt'\n[data.train]\nkind = 'synthetic'\nsamples = 48\nbatch_size = 16\nclasses = 5\nshape = " +
         shape + "\n[optimizer]\nkind = 'adamw'\nlr = 0.01\n[train]\n" + train;
}

const std::vector<Case>& cases() {
  static const std::string half = "precision = 'amp_fp16'\n", brain = "precision = 'amp_bf16'\n";
  static const std::vector<Case> all{
      {"Sgd", {mlp_with("kind = 'sgd'\nlr = 0.1\nmomentum = 0.9\nnesterov = true\nweight_decay = 0.01\n")}},
      {"DecoupledSgdw",
       {mlp_with("kind = 'decoupled_sgdw'\nlr = 0.1\nmomentum = 0.9\nweight_decay = 0.01\n")}},
      {"Adam", {mlp_with("kind = 'adam'\nlr = 0.01\namsgrad = true\nweight_decay = 0.01\n")}},
      {"AdamW", {mlp_with("kind = 'adamw'\nlr = 0.01\nweight_decay = 0.01\n")}},
      {"DecoupledAdamW", {mlp_with("kind = 'decoupled_adamw'\nlr = 0.01\nweight_decay = 0.01\n")}},
      {"Gpt", {kSmallGpt + steps(3)}},
      {"Resnet", {kSmallResnet + steps(3)}},
      {"MlpInBfloat16", {kSmallMlp + steps(3) + brain}},
      {"GptInBfloat16", {kSmallGpt + steps(3) + brain}},
      {"ResnetInBfloat16", {kSmallResnet + steps(3) + brain}},
      {"MlpInFloat16", {kSmallMlp + steps(4) + half + "[precision]\ngrowth_interval = 2\n"}},
      {"GptInFloat16", {kSmallGpt + steps(4) + half + "[precision]\ninit_scale = 1e12\n"}},
      {"WeightsInBfloat16", {kSmallGpt + steps(3) + brain + "[precision]\nparam_dtype = 'bf16'\n"}},
      {"SumsInBfloat16", {kSmallMlp + steps(3) + "[precision]\nreduce_dtype = 'bf16'\n", {.ranks = 2}}},
      {"GptInMicrobatches", {kSmallGpt + steps(3) + "grad_accum = 3\n", {.ranks = 2}}},
      {"ResnetInMicrobatches", {kSmallResnet + steps(3) + "grad_accum = 2\n", {.ranks = 2}}},
      {"Metrics", {kSmallMlp + steps(3) + kMetrics}},
      {"MetricsAsInComposer",
       {kSmallMlp + steps(3) + kMetrics + "[compat]\ncomposer = true\n", {.ranks = 2}}},
      {"RanksWithoutSamples", {short_batches(), {.ranks = 4}}},
      {"ImagesOfAnotherSize", {other_images()}},
      {"Exported", {exported(steps(3) + "grad_accum = 2\n")}},
      {"ExportedByGraphs", {exported(steps(6) + "cuda_graphs = true\n")}},
      {"Script", {script("control_flow", "[3, 6]", steps(3) + "grad_accum = 2\n")}},
      {"Trace", {script("traced", "[3, 6, 6]", steps(3))}},
      {"TraceByGraphs", {script("traced", "[3, 6, 6]", steps(6) + "cuda_graphs = true\n")}},
      {"DeterministicMode", {kSmallResnet + steps(3) + "deterministic_mode = true\n"}},
  };
  return all;
}

class TrainingOnTheDevice : public DeviceRunTest, public testing::WithParamInterface<Case> {};

TEST_P(TrainingOnTheDevice, HasTheBitsOfTheCpu) { expect_bits_of_the_cpu(GetParam().run); }

INSTANTIATE_TEST_SUITE_P(Of, TrainingOnTheDevice, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

class LossOnTheDevice : public DeviceRunTest,
                        public testing::WithParamInterface<std::pair<std::string, std::string>> {};

TEST_P(LossOnTheDevice, HasTheBitsOfTheCpu) {
  expect_bits_of_the_cpu({GetParam().second + steps(3) + "grad_accum = 2\n"});
}

INSTANTIATE_TEST_SUITE_P(Of, LossOnTheDevice, testing::ValuesIn(small_mlps_by_loss()),
                         [](const auto& info) { return info.param.first; });

class DeviceRuns : public DeviceRunTest {};

std::string hexadecimal(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

// Keeps what a run logs but for clocks and memory, in all digits, and its closing text.
class KeepsLogged final : public LoggerDestination {
 public:
  explicit KeepsLogged(std::string& text) : text_(text) {}
  std::string name() const override { return "KeepsLogged"; }
  void log_metrics(const LoggedMetrics& metrics, const LogTime&) override {
    for (const auto& [name, value] : metrics)
      if (!is_measured(name)) text_ += name + " " + hexadecimal(value) + "\n";
  }
  void log_table(const LoggedTable& table, const LogTime&) override {
    for (const auto& row : table.rows)
      for (const auto& cell : row) text_ += cell + "\n";
  }
  void log_images(const LoggedImages& images, const LogTime&) override {
    text_ += images.name + " " + std::string(images.pixels.begin(), images.pixels.end());
  }
  void log_closing_text(const std::string& text) override { text_ += text; }

 private:
  static bool is_measured(const std::string& name) {
    static const std::regex measured(
        "time|wall_clock|throughput|memory|_mem|system|cpu|disk|network|estimate");
    return std::regex_search(name, measured);
  }
  std::string& text_;
};

// All that a run logs, and its weights.
std::string logged(const std::string& recipe, int ranks, Where where) {
  std::string text;
  DeviceRun run{recipe, {.ranks = ranks}};
  run.prepare = [&](Job& job) {
    job.listeners = [&](int rank) {
      Engine::Options options;
      if (rank == 0) options.destinations = {std::make_shared<KeepsLogged>(text)};
      return options;
    };
  };
  const std::string digest = run.run(where).digest;
  return text + digest;
}

void expect_logs_of_the_cpu(const std::string& recipe, int ranks, const std::vector<std::string>& has) {
  const std::string cpu = logged(recipe, ranks, Where::kCpu);
  for (const std::string& name : has) EXPECT_THAT(cpu, HasSubstr(name));
  EXPECT_TRUE(logged(recipe, ranks, Where::kLate) == cpu);
}

std::string callbacks(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += "[[callbacks]]\n" + one + "\n";
  return text;
}

TEST_F(DeviceRuns, CallbacksLogWhatTheyLogOnTheCpu) {
  const std::string all = callbacks(
      {"kind = 'activation_monitor'\ninterval = '1ba'", "kind = 'lr_monitor'", "kind = 'memory_monitor'",
       "kind = 'optimizer_monitor'\nlog_optimizer_metrics = true\nbatch_log_interval = 1",
       "kind = 'runtime_estimator'", "kind = 'speed_monitor'\nwindow_size = 1",
       "kind = 'system_metrics_monitor'", "kind = 'nan_monitor'",
       "kind = 'image_visualizer'\ninterval = '1ba'", "kind = 'free_outputs'",
       "kind = 'memory_snapshot'\ninterval = '1ba'", "kind = 'oom_observer'",
       "kind = 'export_for_inference'\nsave_path = 'model.safetensors'\ninterval = '2ba'",
       "kind = 'early_stopper'\nmonitor = 'MulticlassAccuracy'\npatience = '9ba'",
       "kind = 'threshold_stopper'\nmonitor = 'MulticlassAccuracy'\nthreshold = 2"});
  expect_logs_of_the_cpu(kSmallResnet + steps(3) + all, 2,
                         {"activations/kurtosis", "l2_norm/", "Images/Train", "Images/Eval"});
}

TEST_F(DeviceRuns, ModelsWriteWhatTheyWriteOnTheCpu) {
  const std::string bytes = replaced(kSmallGpt, "vocab_size = 300", "vocab_size = 256");
  const std::string generates = callbacks(
      {"kind = 'generate'\nprompts = ['ab', [1, 2]]\ninterval = '2ba'\nmax_new_tokens = 4\ndo_sample = true\n"
       "top_k = 9\ntop_p = 0.9",
       "kind = 'generate'\nprompts = ['cd']\ninterval = '2ba'\nmax_new_tokens = 4\ndo_sample = false"});
  expect_logs_of_the_cpu(bytes + steps(2) + generates, 1, {"ab\n"});
}

TEST_F(DeviceRuns, PredictAndEvaluateAsTheCpu) {
  const Scratch folder;
  const std::string recipe = kSmallResnet + steps(2) + "precision = 'amp_bf16'\n", run = folder.path("run");
  DeviceRun{recipe}.run(Where::kCpu, run);
  const auto predicted = [&](Where where) {
    const std::string out = folder.path("predictions.h5");
    predict_text(recipe_of(recipe + on(where)), {.checkpoint = run, .out = out});
    EXPECT_THAT(test_device::take_findings(), IsEmpty());
    return Hdf5File(out).read("output");
  };
  const auto evaluated = [&](Where where) {
    const std::string text = eval_text(recipe_of(recipe + on(where)), run);
    EXPECT_THAT(test_device::take_findings(), IsEmpty());
    return text;
  };
  const int64_t before = test_device::counters().kernels;
  const at::Tensor on_device = predicted(Where::kLate);
  const std::string text = evaluated(Where::kLate);
  EXPECT_GT(test_device::counters().kernels, before + 200);
  EXPECT_TRUE(at::equal(on_device, predicted(Where::kCpu)));
  EXPECT_EQ(text, evaluated(Where::kCpu));
}

TEST_F(DeviceRuns, CheckTriesTheModelOnTheDevice) {
  const std::string recipe = kSmallGpt + steps(4);
  const int64_t before = test_device::counters().kernels;
  EXPECT_THAT(check_text(recipe_of(recipe + on(Where::kLate)), {.ranks = 2, .steps = 1}), HasSubstr("ok: "));
  EXPECT_GT(test_device::counters().kernels, before + 100);
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

// What the metric measures, and of what kind its targets are.
struct Measured {
  std::string metric;
  at::Tensor outputs, target;
  std::string keys = "";
};

TEST_F(DeviceRuns, MetricsMeasureWhatTheyMeasureOnTheCpu) {
  at::manual_seed(3);
  const at::Tensor scores = at::randn({6, 3}), classes = at::randint(3, {6}), numbers = at::randn({6, 3});
  const at::Tensor pixels = at::randn({2, 3, 4, 4}), masks = at::randint(3, {2, 4, 4});
  const at::Tensor tokens = at::randn({2, 5, 7}), next = at::randint(7, {2, 5});
  const at::Tensor pair = at::randn({6, 2}), either = at::randint(2, {6}), labels = at::randint(2, {6, 3});
  next[0][1] = -100;
  const std::string three = "num_classes = 3\n", of_labels = "num_labels = 3\n";
  std::vector<Measured> all{
      {"MulticlassAccuracy", scores, classes},
      {"CrossEntropy", scores, classes},
      {"ConfusionMatrix", scores, classes, three},
      {"MIoU", pixels, masks, three},
      {"Dice", pixels, masks, three},
      {"LanguageCrossEntropy", tokens, next},
      {"LanguagePerplexity", tokens, next},
      {"MaskedAccuracy", tokens, next},
      {"MeanSquaredError", numbers, scores},
      {"MeanAbsoluteError", numbers, scores},
      {"R2Score", numbers, scores, "num_outputs = 3\n"},
      {"RetrievalRecall", numbers, labels, "top_k = 2\n"},
      {"LossMetric", numbers, scores, "loss = 'mse'\n"},
  };
  for (const char* kind : {"F1Score", "Precision", "Recall"}) {
    all.push_back({std::string("Binary") + kind, pair, either});
    all.push_back({std::string("Multiclass") + kind, pixels, masks, three});
    all.push_back({std::string("Multilabel") + kind, numbers, labels, of_labels});
  }
  for (const char* kind : {"AUROC", "AveragePrecision"}) {
    all.push_back({std::string("Binary") + kind, pair, either});
    all.push_back({std::string("Multiclass") + kind, pixels, masks, three});
    all.push_back({std::string("Multilabel") + kind, numbers, labels, of_labels});
  }
  // Those of choices and answers are measured from texts: tests/commands/tasks_test.cpp.
  constexpr std::size_t kOfTasks = 5, kOfPlugins = 1;
  EXPECT_EQ(all.size(), metric_catalog().kinds().size() - kOfTasks - kOfPlugins);
  for (const Measured& one : all) {
    const auto sums = [&](const c10::Device& device) {
      const MetricPtr metric =
          make_metric(parse_recipe("kind = '" + one.metric + "'\n" + one.keys, "metric"));
      metric->update(one.outputs.to(device), one.target.to(device));
      return metric->sums();
    };
    EXPECT_EQ(sums(test_device::device()), sums(at::kCPU)) << one.metric;
  }
}

}  // namespace
}  // namespace tutti
