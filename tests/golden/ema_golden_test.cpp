#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/ema.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kEmaFile = "ema.h5";

std::vector<at::Tensor> tensors(const GoldenCase& c, const std::string& group) {
  std::vector<at::Tensor> found;
  for (const std::string& name : c.names(group)) found.push_back(c.tensor(group + "/" + name).clone());
  return found;
}

std::string numbered(const char* group, int k) { return group + std::to_string(k); }

void expect_averages(const GoldenCase& c) {
  const auto averages = tensors(c, "in/ema_init");
  std::set<std::string> inputs = {"ema_init"}, outputs;
  int k = 0;
  for (; c.holds(numbered("in/w_", k)); ++k) {
    compute_ema(tensors(c, numbered("in/w_", k)), averages, c.number("smoothing"));
    const std::string group = numbered("out/ema_", k);
    const auto names = c.names(group);
    ASSERT_EQ(names.size(), averages.size());
    for (size_t i = 0; i < names.size(); ++i) c.expect_close(averages[i], group + "/" + names[i]);
    inputs.insert(numbered("w_", k));
    outputs.insert(numbered("ema_", k));
  }
  EXPECT_GT(k, 0) << c.title();
  c.expect_only({"smoothing"}, inputs);
  c.expect_only_outputs(outputs);
}

void expect_smoothing(const GoldenCase& c) {
  c.expect_only({"half_life", "update_interval"}, {"half_life_value", "update_interval_value"});
  c.expect_only_outputs({"smoothing"});
  std::vector<double> smoothing;
  const auto lives = parts_of(c.text("half_life")), intervals = parts_of(c.text("update_interval"));
  for (size_t i = 0; i < lives.size(); ++i)
    smoothing.push_back(
        EMA({.half_life = Time::parse(lives[i]), .update_interval = Time::parse(intervals[i])}).smoothing());
  c.expect_close(at::tensor(smoothing, at::kDouble), "out/smoothing");
}

class GoldenEma : public testing::TestWithParam<std::string> {};

TEST_P(GoldenEma, AveragesAsComposerDoes) {
  const GoldenCase c(golden_path(kEmaFile), GetParam());
  if (c.has("smoothing"))
    expect_averages(c);
  else
    expect_smoothing(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenEma, testing::ValuesIn(golden_cases(golden_path(kEmaFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenEma);

}  // namespace
}  // namespace tutti
