#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/augmentation/progressive_resizing.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kResizingFile = "progressive_resizing.h5";
constexpr int64_t kResizingBatches = 1000;  // of the schedules' trainings

ResizeMode resize_mode_of(const GoldenCase& c) {
  const std::map<std::string, ResizeMode> modes = {{"resize", ResizeMode::kResize},
                                                   {"crop", ResizeMode::kCrop}};
  return known(modes, c.text("mode"), "mode");
}

void expect_resized(const GoldenCase& c) {
  c.expect_only({"mode", "scale_factor", "resize_targets"}, {"input", "target", "crop"});
  c.expect_only_outputs({"input", "target"});
  DrawScript script;
  if (c.holds("in/crop")) {
    const at::Tensor crop = c.tensor("in/crop");
    script.integer = {crop[0].item<int64_t>(), crop[1].item<int64_t>()};
  }
  ScriptedDraws draws(script);
  const auto [input, target] =
      resize_batch(c.tensor("in/input"), c.tensor("in/target"), c.number("scale_factor"), resize_mode_of(c),
                   c.number("resize_targets") != 0.0, draws);
  c.expect_close(input, "out/input");
  c.expect_close(target, "out/target");
  EXPECT_EQ(target.scalar_type(), c.tensor("in/target").scalar_type()) << c.title();
  draws.expect_all_used();
}

ProgressiveResizing::Options resizing_options_of(const GoldenCase& c) {
  return {.mode = resize_mode_of(c),
          .initial_scale = c.number("initial_scale"),
          .finetune_fraction = c.number("finetune_fraction"),
          .delay_fraction = c.number("delay_fraction"),
          .size_increment = static_cast<int64_t>(c.number("size_increment"))};
}

class ResizingLogger final : public Logger {
 public:
  void log_metrics(const LoggedMetrics& metrics) override {
    for (const auto& [name, value] : metrics) series[name].push_back(value);
  }
  std::map<std::string, std::vector<double>> series;
};

// A training of a thousand batches, so that the elapsed fractions are thousandths.
State resizing_state(const GoldenCase& c, double elapsed) {
  State state;
  state.max_duration = Time(static_cast<double>(kResizingBatches), TimeUnit::kBatch);
  state.timestamp.batch = std::llround(elapsed * static_cast<double>(kResizingBatches));
  EXPECT_NEAR(state.elapsed_duration().value(), elapsed, 1e-12) << c.title();
  const auto size = [&](const char* name) { return static_cast<int64_t>(c.number(name)); };
  state.batch.set("input", at::zeros({1, 1, size("H"), size("W")}));
  state.batch.set("target", at::zeros({1}, at::kLong));
  return state;
}

void expect_resizing_schedule(const GoldenCase& c) {
  c.expect_only({"mode", "initial_scale", "finetune_fraction", "delay_fraction", "size_increment", "H", "W"},
                {"elapsed"});
  c.expect_only_outputs({"height", "width", "scale_factor"});
  ProgressiveResizing algorithm(resizing_options_of(c));
  ResizingLogger logger;
  std::vector<int64_t> heights, widths;
  const at::Tensor elapsed = c.tensor("in/elapsed");
  for (int64_t i = 0; i < elapsed.size(0); ++i) {
    State state = resizing_state(c, elapsed[i].item<double>());
    algorithm.apply(Event::kAfterDataloader, state, logger);
    heights.push_back(state.batch["input"].size(2));
    widths.push_back(state.batch["input"].size(3));
  }
  c.expect_close(at::tensor(heights), "out/height");
  c.expect_close(at::tensor(widths), "out/width");
  for (const std::string name : {"height", "width", "scale_factor"})
    c.expect_close(at::tensor(logger.series["progressive_resizing/" + name], at::kDouble), "out/" + name);
}

class GoldenProgressiveResizing : public testing::TestWithParam<std::string> {};

TEST_P(GoldenProgressiveResizing, ResizesAsComposerDoes) {
  const GoldenCase c(golden_path(kResizingFile), GetParam());
  if (c.holds("in/elapsed"))
    expect_resizing_schedule(c);
  else
    expect_resized(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenProgressiveResizing,
                         testing::ValuesIn(golden_cases(golden_path(kResizingFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenProgressiveResizing);

}  // namespace
}  // namespace tutti
