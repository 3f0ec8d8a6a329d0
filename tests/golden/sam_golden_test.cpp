#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "algorithms/loop/sam.h"
#include "models/zoo/mlp.h"
#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kSamFile = "sam.h5";

// A network of the case's weights, trained on its one batch by SAM over SGD.
class Training final : public Closure {
 public:
  explicit Training(const GoldenCase& c)
      : sam_({c.number("rho"), c.number("epsilon"), static_cast<int64_t>(c.number("interval"))}),
        batch_(TensorTree::Children{{"input", c.tensor("in/x")}, {"target", c.tensor("in/y")}}) {
    const auto wide = c.tensor("in/weights/0.weight"), narrow = c.tensor("in/weights/2.weight");
    state_.model = std::make_shared<SequentialNet>(std::vector<std::string>{
        layer(wide.size(1), wide.size(0)), "ReLU()", layer(narrow.size(1), narrow.size(0))});
    materialise(*state_.model, 1);
    const c10::NoGradGuard no_grad;
    for (const auto& named : parameters(*state_.model)) {
      named.parameter->tensor.copy_(c.tensor("in/weights/" + named.name));
      state_.views.push_back(whole_view(named.name, named.parameter->tensor));
    }
    state_.optimizer = make_optimizer(sgd(c), state_.views);
    sam_.apply(Event::kAfterLoad, state_, logger_);
  }

  // Returns the loss of the first pass.
  double train_step() {
    const double loss = backward();
    state_.closure_step(*this);
    ++state_.timestamp.batch;
    return loss;
  }

  double pass(const Move& move) override {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> before;
    for (const auto& view : state_.views) before.push_back(view.tensor.clone());
    move();
    const double loss = backward();
    for (size_t i = 0; i < before.size(); ++i) state_.views[i].tensor.copy_(before[i]);
    return loss;
  }
  void step() override { state_.optimizer->step(); }

  void expect_weights(const GoldenCase& c, const std::string& group) const {
    for (const auto& view : state_.views) c.expect_close(view.tensor, group + "/" + view.name);
  }

 private:
  static std::string layer(int64_t in, int64_t out) {
    return "Linear(" + std::to_string(in) + ", " + std::to_string(out) + ")";
  }
  static Setting sgd(const GoldenCase& c) {
    const auto number = [&](const char* key) { return c.has(key) ? c.number(key) : 0.0; };
    return section_with({{"kind", std::string("sgd")},
                         {"lr", c.number("lr")},
                         {"momentum", number("momentum")},
                         {"dampening", number("dampening")},
                         {"nesterov", number("nesterov") != 0.0},
                         {"weight_decay", number("weight_decay")}});
  }
  double backward() {
    const c10::AutoGradMode grad(true);
    for (auto& view : state_.views) view.tensor.mutable_grad() = at::Tensor();
    const at::Tensor loss = state_.model->loss(state_.model->forward(batch_), batch_);
    loss.backward();
    for (auto& view : state_.views) view.grad = view.tensor.grad();
    return loss.item<double>();
  }

  SAM sam_;
  Batch batch_;
  State state_;
  Logger logger_;
};

class GoldenSam : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSam, StepsAsComposerDoes) {
  const GoldenCase c(golden_path(kSamFile), GetParam());
  c.expect_only({"rho", "epsilon", "interval", "lr", "momentum", "dampening", "nesterov", "weight_decay"},
                {"weights", "x", "y"});
  const at::Tensor expected = c.tensor("out/loss");
  std::set<std::string> outputs = {"loss"};
  std::vector<double> losses;
  Training training(c);
  for (int64_t k = 0; k < expected.numel(); ++k) {
    losses.push_back(training.train_step());
    const std::string weights = "w_" + std::to_string(k);
    training.expect_weights(c, "out/" + weights);
    outputs.insert(weights);
  }
  c.expect_close(at::tensor(losses, at::kDouble), "out/loss");
  c.expect_only_outputs(outputs);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSam, testing::ValuesIn(golden_cases(golden_path(kSamFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSam);

}  // namespace
}  // namespace tutti
