#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "algorithms/surgery/no_op_model.h"
#include "models/zoo/mlp.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kNoOpFile = "no_op_model.h5";

class GoldenNoOpModel : public testing::TestWithParam<std::string> {};

TEST_P(GoldenNoOpModel, IsComposers) {
  const GoldenCase c(golden_path(kNoOpFile), GetParam());
  ASSERT_TRUE(c.text("composer_api").ends_with("NoOpModel")) << c.title();
  c.expect_only({}, {"weights", "y"});
  c.expect_only_outputs({"outputs", "loss", "grad_weights"});
  State state;
  state.model = std::make_shared<Mlp>(MlpOptions{.in_features = 4, .hidden = {}, .num_classes = 2});
  Logger logger;
  NoOpModel().apply(Event::kInit, state, logger);
  materialise(*state.model, 1);
  ASSERT_EQ(parameters(*state.model).size(), 1U);
  const at::Tensor weights = parameters(*state.model)[0].parameter->tensor;
  c.expect_close(weights.detach(), "in/weights");
  const Batch batch = TensorTree::Children{{"input", at::zeros({1})}, {"target", c.tensor("in/y")}};
  const Outputs outputs = state.model->forward(batch);
  c.expect_close(outputs.tensor().detach(), "out/outputs");
  const at::Tensor loss = state.model->loss(outputs, batch);
  c.expect_close(loss.detach(), "out/loss");
  loss.backward();
  c.expect_close(weights.grad(), "out/grad_weights");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenNoOpModel, testing::ValuesIn(golden_cases(golden_path(kNoOpFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenNoOpModel);

}  // namespace
}  // namespace tutti
