#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/mixup.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/sample_mixing_case.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kMixUpFile = "mixup.h5";

void expect_mixed_up(const GoldenCase& c, const MixedUp& mixed) {
  c.expect_only_outputs({"input", "target_perm", "mixing"});
  c.expect_close(mixed.input, "out/input");
  c.expect_close(mixed.target_perm, "out/target_perm");
  if (c.holds("out/mixing")) c.expect_close(at::tensor(mixed.mixing, at::kDouble), "out/mixing");
}

void expect_given_mixup(const GoldenCase& c) {
  c.expect_only({"mixing"}, {"input", "target", "indices", "mixing"});
  EXPECT_EQ(c.tensor("in/mixing").item<double>(), c.number("mixing"));
  expect_mixed_up(c, mixup_batch(c.tensor("in/input"), c.tensor("in/target"), c.number("mixing"),
                                 c.tensor("in/indices")));
}

// For alpha = 0 no number is drawn, whatever the case says.
void expect_drawn_mixup(const GoldenCase& c) {
  c.expect_only({"alpha"}, {"input", "target", "indices", "beta_draw"});
  const double alpha = c.number("alpha");
  DrawScript script{.permutation = {c.tensor("in/indices")}};
  if (alpha > 0.0) script.beta = {c.tensor("in/beta_draw").item<double>()};
  ScriptedDraws draws(script);
  expect_mixed_up(c, mixup_batch(c.tensor("in/input"), c.tensor("in/target"), draws, alpha));
  draws.expect_all_used();
}

void expect_mixup_algorithm(const GoldenCase& c) {
  c.expect_only({"interpolate_loss", "num_classes"}, {"input", "target", "logits", "indices", "mixing"});
  MixUp algorithm(0.2, mixing_options_of(c));
  expect_mixed(c, algorithm,
               {.beta = {c.tensor("in/mixing").item<double>()}, .permutation = {c.tensor("in/indices")}});
}

class GoldenMixUp : public testing::TestWithParam<std::string> {};

TEST_P(GoldenMixUp, MixesAsComposerDoes) {
  const GoldenCase c(golden_path(kMixUpFile), GetParam());
  if (c.has("interpolate_loss"))
    expect_mixup_algorithm(c);
  else if (c.has("mixing"))
    expect_given_mixup(c);
  else
    expect_drawn_mixup(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenMixUp, testing::ValuesIn(golden_cases(golden_path(kMixUpFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMixUp);

}  // namespace
}  // namespace tutti
