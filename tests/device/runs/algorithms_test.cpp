// Every algorithm on the test device: one row of tests/algorithms/rows.cpp each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <regex>
#include <set>
#include <vector>

#include "tests/algorithms/rows.h"
#include "tests/device/runs/device_run.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

// A fifth as long: kSteps / 5 steps in two epochs, and all times likewise.
std::string shortened(const std::string& recipe) {
  static const std::regex times("'([0-9]+)ba'");
  std::string text;
  auto from = recipe.cbegin();
  for (std::sregex_iterator found(from, recipe.cend(), times), end; found != end; ++found) {
    text.append(from, (*found)[0].first);
    text += "'" + std::to_string(std::max(1, std::stoi((*found)[1]) / 5)) + "ba'";
    from = (*found)[0].second;
  }
  text.append(from, recipe.cend());
  return replaced(text, "subset_num_batches = 25", "subset_num_batches = 5");
}

// Of a GroupNorm in channels-last, libtorch sums gradients in another order on all but CPUs.
bool sums_otherwise(const AlgorithmRow& row) { return name_of(row) == "channels_last_OfUnet"; }

std::string with_equal_sums(const AlgorithmRow& row, const std::string& recipe) {
  return name_of(row) == "channels_last" ? replaced(recipe, "'GroupNorm(4, 16)', ", "") : recipe;
}

DeviceRun run_of(const AlgorithmRow& row, int ranks) {
  DeviceRun run{.recipe = with_equal_sums(row, shortened(recipe_text(row, true, evaluated(row)))),
                .sharded = {.ranks = ranks}};
  run.prepare = [&row](Job& job) {
    if (row.make_model) job.make_model = row.make_model;
  };
  return run;
}

class AlgorithmOnTheDevice : public DeviceRunTest, public testing::WithParamInterface<AlgorithmRow> {};

bool is_of(const AlgorithmRow& row, std::initializer_list<const char*> models) {
  return std::ranges::any_of(models, [&](const char* model) { return name_of(row).ends_with(model); });
}

// CPUs have kernels of tutti's own for RMSNorm and rotary positions, which round otherwise; a diffusion model
// differs by one rounding after some steps.
bool rounds_as_the_cpu(const AlgorithmRow& row) {
  return !is_of(row, {"_OfLlama", "_BesideLora", "_OfDiffusion"}) && !sums_otherwise(row);
}

// Of a loss near 1: a rounding of 16 bits where a norm has them.
double rounding_of(const AlgorithmRow& row) { return row.kind.starts_with("low_precision_") ? 1e-3 : 1e-5; }

// All but those of recurrent layers, whose fused cells CUDA has and this device has not.
std::vector<AlgorithmRow> rows_for_the_device() {
  std::vector<AlgorithmRow> rows = algorithm_rows();
  std::erase_if(rows, [](const AlgorithmRow& row) { return is_of(row, {"_OfLstm", "_OfGru"}); });
  return rows;
}

std::vector<double> losses_of(const std::string& metrics) {
  static const std::regex loss("\"loss\": ([0-9.eE+-]+)");
  std::vector<double> losses;
  for (std::sregex_iterator found(metrics.begin(), metrics.end(), loss), end; found != end; ++found)
    losses.push_back(std::stod((*found)[1]));
  return losses;
}

TEST_P(AlgorithmOnTheDevice, HasTheBitsOfTheCpu) {
  if (rounds_as_the_cpu(GetParam())) return expect_bits_of_the_cpu(run_of(GetParam(), 1));
  const DeviceRun run = run_of(GetParam(), 1);
  const auto cpu = losses_of(run.run(Where::kCpu).metrics), device = losses_of(run.run(Where::kLate).metrics);
  EXPECT_GT(cpu.size(), 3U);
  EXPECT_THAT(device, testing::Pointwise(testing::DoubleNear(rounding_of(GetParam())), cpu));
}

TEST_P(AlgorithmOnTheDevice, HasThemWhereMicrobatchesAreGraphs) {
  static const std::set<std::string> by_day{"blurpool", "gated_linear_units", "layer_freezing",
                                            "squeeze_excite"};
  if (!is_nightly() && !by_day.contains(GetParam().kind)) GTEST_SKIP() << "by night";
  if (!rounds_as_the_cpu(GetParam())) GTEST_SKIP() << "rounds otherwise";
  DeviceRun run = run_of(GetParam(), 1);
  run.recipe = replaced(run.recipe, "[train]\n", "[train]\ncuda_graphs = true\n");
  expect_bits_of_the_cpu(run);
}

TEST_P(AlgorithmOnTheDevice, HasThemOnTwoRanks) {
  static const std::set<std::string> by_day{
      "cutmix",          "ema", "ghost_batchnorm",   "gradient_clipping",
      "label_smoothing", "sam", "selective_backprop"};
  if (!is_nightly() && !by_day.contains(GetParam().kind)) GTEST_SKIP() << "by night";
  if (!rounds_as_the_cpu(GetParam())) GTEST_SKIP() << "rounds otherwise";
  expect_bits_of_the_cpu(run_of(GetParam(), 2));
  if (is_nightly()) expect_bits_of_the_cpu(run_of(GetParam(), 2), Where::kEager);
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmOnTheDevice, testing::ValuesIn(rows_for_the_device()),
                         [](const auto& info) { return name_of(info.param); });

class AdaptiveClippingOnTheDevice : public DeviceRunTest {};

TEST_F(AdaptiveClippingOnTheDevice, HasTheBitsOfTheCpu) {
  for (const char* type : {"adaptive", "value"})
    expect_bits_of_the_cpu({kSmallMlp + steps(3) +
                            "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = '" + type +
                            "'\nclipping_threshold = 0.01\n"});
}

}  // namespace
}  // namespace tutti
