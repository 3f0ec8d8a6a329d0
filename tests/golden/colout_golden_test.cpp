#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/colout.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kColOutFile = "colout.h5";

ColOutOptions colout_options_of(const GoldenCase& c) {
  ColOutOptions options{.p_row = c.number("p_row"), .p_col = c.number("p_col")};
  const std::map<std::string, std::optional<bool>> kinds = {
      {"auto", std::nullopt}, {"True", true}, {"False", false}};
  if (c.has("resize_target")) options.resize_target = known(kinds, c.text("resize_target"), "resize_target");
  return options;
}

class GoldenColOut : public testing::TestWithParam<std::string> {};

// Composer takes images of PIL, uint8 [H, W, 3], too; here images are [..., H, W].
TEST_P(GoldenColOut, DropsWhatComposerDrops) {
  const GoldenCase c(golden_path(kColOutFile), GetParam());
  c.expect_only({"p_row", "p_col", "resize_target"},
                {"input", "target", "row_perm", "col_perm", "kept_rows", "kept_cols"});
  c.expect_only_outputs({"input", "target"});
  ScriptedDraws draws({.permutation = {c.tensor("in/row_perm"), c.tensor("in/col_perm")}});
  const at::Tensor input = c.tensor("in/input");
  const bool is_pil = input.scalar_type() == at::kByte;
  if (c.holds("in/target")) {
    const at::Tensor target = c.tensor("in/target");
    const auto [images, targets] = colout_batch(input, target, draws, colout_options_of(c));
    c.expect_close(images, "out/input");
    if (c.holds("out/target"))
      c.expect_close(targets, "out/target");
    else
      EXPECT_TRUE(targets.is_same(target)) << c.title();
  } else if (is_pil) {
    c.expect_close(colout_batch(input.permute({2, 0, 1}), draws, colout_options_of(c)).permute({1, 2, 0}),
                   "out/input");
  } else {
    c.expect_close(colout_batch(input, draws, colout_options_of(c)), "out/input");
  }
  draws.expect_all_used();
}

INSTANTIATE_TEST_SUITE_P(All, GoldenColOut, testing::ValuesIn(golden_cases(golden_path(kColOutFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenColOut);

}  // namespace
}  // namespace tutti
