#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/gyro_dropout.h"
#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kGyroFile = "gyro_dropout.h5";

DrawScript drawn_by(const GoldenCase& c) {
  DrawScript script;
  script.uniforms.push_back(c.tensor("in/uniform"));
  const at::Tensor picks = c.tensor("in/picks").flatten();
  script.integer.assign(picks.const_data_ptr<int64_t>(), picks.const_data_ptr<int64_t>() + picks.numel());
  return script;
}

class GoldenGyroDropout : public testing::TestWithParam<std::string> {};

// Masks are chosen every iter_num steps.
TEST_P(GoldenGyroDropout, DropsWhatComposerDrops) {
  const GoldenCase c(golden_path(kGyroFile), GetParam());
  ASSERT_TRUE(c.text("composer_api").ends_with("apply_gyro_dropout")) << c.text("composer_api");
  c.expect_only({"iter_num", "iters_per_epoch", "max_epoch", "p", "sigma", "tau"}, {"picks", "uniform", "x"});
  c.expect_only_outputs({"pick_step", "y", "y_eval"});
  const auto count = [&](const char* name) { return static_cast<int64_t>(c.number(name)); };
  Sequential net({std::make_shared<Dropout>(0.9)});
  EXPECT_EQ(apply_gyro_dropout(net, count("iters_per_epoch"), count("max_epoch"),
                               {.p = c.number("p"), .sigma = count("sigma"), .tau = count("tau")}),
            1);
  const at::Tensor x = c.tensor("in/x");
  const ScriptedDraws script(drawn_by(c));
  std::vector<int64_t> pick_steps;
  std::vector<at::Tensor> y;
  ForwardContext training;
  training.source = [&](std::string_view, int64_t) {
    pick_steps.push_back(std::ssize(y));
    return std::make_unique<ScriptedDraws>(script);
  };
  set_context(net, &training);
  for (int64_t step = 0; step < x.size(0); ++step) y.push_back(net.forward(x[step]).tensor());
  script.expect_all_used();
  c.expect_close(at::stack(y), "out/y");
  c.expect_close(at::tensor(pick_steps, at::kLong), "out/pick_step");
  for (std::size_t i = 1; i < pick_steps.size(); ++i)
    EXPECT_EQ(pick_steps[i] - pick_steps[i - 1], count("iter_num"));
  const ForwardContext evaluating{.training = false};
  set_context(net, &evaluating);
  c.expect_close(net.forward(x[0]).tensor(), "out/y_eval");
  set_context(net, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGyroDropout, testing::ValuesIn(golden_cases(golden_path(kGyroFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGyroDropout);

}  // namespace
}  // namespace tutti
