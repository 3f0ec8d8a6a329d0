#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "models/losses.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

const std::map<std::string, LossReduction> kReductions = {
    {"none", LossReduction::kNone}, {"mean", LossReduction::kMean}, {"sum", LossReduction::kSum}};

LossReduction reduction_of(const GoldenCase& c, LossReduction fallback) {
  return c.has("reduction") ? known(kReductions, c.text("reduction"), "reduction") : fallback;
}

bool flag(const GoldenCase& c, const char* key, bool fallback = false) {
  return c.has(key) ? c.number(key) != 0.0 : fallback;
}

// An optional input of a case.
at::Tensor optional_input(const GoldenCase& c, const std::string& name) {
  const std::vector<std::string> there = c.names("in");
  return std::ranges::count(there, name) > 0 ? c.tensor("in/" + name) : at::Tensor();
}

at::Tensor soft_cross_entropy_of(const GoldenCase& c, const at::Tensor& input) {
  c.expect_only({"reduction", "ignore_index"}, {"input", "target", "weight"});
  SoftCrossEntropyOptions options{.weight = optional_input(c, "weight")};
  options.reduction = reduction_of(c, LossReduction::kMean);
  if (c.has("ignore_index")) options.ignore_index = static_cast<int64_t>(c.number("ignore_index"));
  return soft_cross_entropy(input, c.tensor("in/target"), options);
}

at::Tensor binary_cross_entropy_of(const GoldenCase& c, const at::Tensor& input) {
  c.expect_only({"reduction", "scale_by_batch_size"}, {"input", "target", "weight", "pos_weight"});
  return tutti::binary_cross_entropy_with_logits(
      input, c.tensor("in/target"),
      {.weight = optional_input(c, "weight"),
       .pos_weight = optional_input(c, "pos_weight"),
       .reduction = reduction_of(c, LossReduction::kSum),
       .scale_by_batch_size = flag(c, "scale_by_batch_size", true)});
}

at::Tensor dice_loss_of(const GoldenCase& c, const at::Tensor& input) {
  c.expect_only(
      {"sigmoid", "softmax", "squared_pred", "jaccard", "batch", "ignore_absent_classes", "reduction"},
      {"input", "target"});
  return dice_loss(input, c.tensor("in/target"),
                   {.sigmoid = flag(c, "sigmoid"),
                    .softmax = flag(c, "softmax"),
                    .squared_pred = flag(c, "squared_pred"),
                    .jaccard = flag(c, "jaccard"),
                    .batch = flag(c, "batch"),
                    .ignore_absent_classes = flag(c, "ignore_absent_classes"),
                    .reduction = reduction_of(c, LossReduction::kMean)});
}

using LossOf = at::Tensor (*)(const GoldenCase& c, const at::Tensor& input);

const std::map<std::string, LossOf> kLosses = {
    {"composer.loss.soft_cross_entropy", soft_cross_entropy_of},
    {"composer.loss.binary_cross_entropy_with_logits", binary_cross_entropy_of},
    {"composer.loss.DiceLoss", dice_loss_of}};

class GoldenLoss : public testing::TestWithParam<std::string> {};

TEST_P(GoldenLoss, GivesComposersLossAndGradient) {
  const GoldenCase c(golden_path("losses.h5"), GetParam());
  const LossOf loss_of = known(kLosses, c.text("composer_api"), "loss");
  const at::Tensor input = c.tensor("in/input").requires_grad_();
  if (c.has("error") && c.has("reduction") && !kReductions.contains(c.text("reduction")))
    GTEST_SKIP() << "there is no such LossReduction";
  if (c.has("error")) {
    EXPECT_THROW(loss_of(c, input), UserError) << c.title();
    return;
  }
  c.expect_only_outputs({"loss", "grad_input"});
  const at::Tensor loss = loss_of(c, input);
  c.expect_close(loss.detach(), "out/loss");
  loss.backward(at::ones_like(loss));
  c.expect_close(input.grad(), "out/grad_input");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLoss, testing::ValuesIn(golden_cases(golden_path("losses.h5"))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLoss);

}  // namespace
}  // namespace tutti
