#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "models/loss.h"
#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

const std::string kLossFile = own_path("torch_losses.h5");
const std::set<std::string> kLossParameters = {"kind",  "weight", "pos_weight", "alpha",
                                               "gamma", "beta",   "softmax",    "sigmoid"};

Setting::Value loss_value(const GoldenCase& c, const std::string& key) {
  if (key == "softmax" || key == "sigmoid") return c.number(key) != 0.0;
  if (!key.ends_with("weight")) return c.number(key);
  std::vector<Setting::Value> numbers;
  for (const double number : c.numbers(key)) numbers.emplace_back(number);
  return list_value(numbers);
}

LossPtr loss_of_case(const GoldenCase& c) {
  std::vector<std::pair<std::string, Setting::Value>> keys{{"kind", c.text("kind")}};
  for (const std::string& key : kLossParameters)
    if (key != "kind" && c.has(key)) keys.emplace_back(key, loss_value(c, key));
  return make_loss(section_with(keys));
}

class TorchLoss : public testing::TestWithParam<std::string> {
 protected:
  const GoldenCase case_{kLossFile, GetParam()};
  const LossPtr loss_ = loss_of_case(case_);
  const at::Tensor outputs_ = case_.tensor("in/outputs").requires_grad_();
  const at::Tensor target_ = case_.tensor("in/target");
};

TEST_P(TorchLoss, HasTorchsMeanAndGradient) {
  case_.expect_only(kLossParameters, {"outputs", "target"});
  const at::Tensor loss = loss_->mean(outputs_, target_);
  case_.expect_close(loss.detach(), "out/loss");
  loss.backward();
  case_.expect_close(outputs_.grad(), "out/grad");
}

// As a step weighs its microbatches.
TEST_P(TorchLoss, HasThemInMicrobatchesOfOneSampleToo) {
  double weight = 0.0, sum = 0.0;
  for (int64_t i = 0; i < target_.size(0); ++i) {
    const at::Tensor part = target_.narrow(0, i, 1);
    const double items = loss_->items(part);
    if (items == 0.0) continue;
    const at::Tensor loss = loss_->mean(outputs_.narrow(0, i, 1), part);
    loss.backward(at::full_like(loss, items));
    sum += loss.item<double>() * items;
    weight += items;
  }
  EXPECT_NEAR(weight, loss_->items(target_), 1e-6);
  case_.expect_close(at::scalar_tensor(sum / weight, at::kFloat), "out/loss");
  case_.expect_close(outputs_.grad() / weight, "out/grad");
}

INSTANTIATE_TEST_SUITE_P(All, TorchLoss, testing::ValuesIn(golden_cases(kLossFile)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
