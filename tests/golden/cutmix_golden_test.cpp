#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/augmentation/cutmix.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/sample_mixing_case.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kCutMixFile = "cutmix.h5";

// Composer's (x1, y1, x2, y2), of which x runs along the height.
Box cutmix_box_of(const at::Tensor& stored) {
  const int64_t* edges = stored.data_ptr<int64_t>();
  return {.top = edges[0], .left = edges[1], .bottom = edges[2], .right = edges[3]};
}

void expect_cutmixed(const GoldenCase& c, const CutMixed& mixed) {
  c.expect_only_outputs({"input", "target_perm", "adjusted_lambda", "bbox"});
  c.expect_close(mixed.input, "out/input");
  c.expect_close(mixed.target_perm, "out/target_perm");
  c.expect_close(at::tensor(mixed.adjusted_lambda, at::kDouble), "out/adjusted_lambda");
  const Box& box = mixed.bbox;
  c.expect_close(at::tensor({box.top, box.left, box.bottom, box.right}, at::kLong), "out/bbox");
}

void expect_given_cutmix(const GoldenCase& c) {
  c.expect_only({}, {"input", "target", "indices", "bbox"});
  expect_cutmixed(c, cutmix_batch(c.tensor("in/input"), c.tensor("in/target"),
                                  cutmix_box_of(c.tensor("in/bbox")), c.tensor("in/indices")));
}

void expect_drawn_cutmix(const GoldenCase& c) {
  c.expect_only({"alpha", "length", "uniform_sampling"},
                {"input", "target", "indices", "cx", "cy", "lambda_drawn"});
  CutMixOptions options{.alpha = c.number("alpha"), .uniform_sampling = c.number("uniform_sampling") != 0.0};
  if (c.has("length")) options.length = c.number("length");
  DrawScript script{.integer = {c.tensor("in/cx").item<int64_t>(), c.tensor("in/cy").item<int64_t>()},
                    .permutation = {c.tensor("in/indices")}};
  if (c.holds("in/lambda_drawn") && options.alpha > 0.0)
    script.beta = {c.tensor("in/lambda_drawn").item<double>()};
  ScriptedDraws draws(script);
  expect_cutmixed(c, cutmix_batch(c.tensor("in/input"), c.tensor("in/target"), draws, options));
  draws.expect_all_used();
}

// A centre from which a box of this size, or of one more, has these edges; -1: none.
int64_t centre_of(int64_t low, int64_t high, int64_t cut, int64_t size) {
  for (int64_t centre = 0; centre < size; ++centre)
    if (std::max<int64_t>(centre - cut / 2, 0) == low && std::min(centre + cut / 2, size) == high)
      return centre;
  return -1;
}

// The case has the box that was drawn, not the numbers that it was drawn by: some that give this box.
DrawScript script_for(const Box& box, int64_t height, int64_t width) {
  constexpr int kSteps = 10000;
  for (int step = 0; step <= kSteps; ++step) {
    const double lambda = static_cast<double>(step) / kSteps, cut = std::sqrt(1.0 - lambda);
    const auto size = [&](int64_t whole) { return static_cast<int64_t>(static_cast<double>(whole) * cut); };
    const int64_t row = centre_of(box.top, box.bottom, size(height), height);
    const int64_t column = centre_of(box.left, box.right, size(width), width);
    if (row >= 0 && column >= 0) return {.integer = {row, column}, .beta = {lambda}};
  }
  throw std::logic_error("no draw gives the box of the case");
}

void expect_cutmix_algorithm(const GoldenCase& c) {
  c.expect_only({"interpolate_loss", "num_classes"},
                {"input", "target", "logits", "indices", "bbox", "adjusted_lambda"});
  const at::Tensor input = c.tensor("in/input");
  const Box box = cutmix_box_of(c.tensor("in/bbox"));
  const auto area = static_cast<double>(input.size(2) * input.size(3));
  EXPECT_NEAR(c.tensor("in/adjusted_lambda").item<double>(), 1.0 - static_cast<double>(box.area()) / area,
              1e-12);
  DrawScript script = script_for(box, input.size(2), input.size(3));
  script.permutation = {c.tensor("in/indices")};
  CutMix algorithm({}, mixing_options_of(c));
  expect_mixed(c, algorithm, std::move(script));
}

class GoldenCutMix : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCutMix, MixesAsComposerDoes) {
  const GoldenCase c(golden_path(kCutMixFile), GetParam());
  if (c.has("interpolate_loss"))
    expect_cutmix_algorithm(c);
  else if (c.holds("in/bbox"))
    expect_given_cutmix(c);
  else
    expect_drawn_cutmix(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCutMix, testing::ValuesIn(golden_cases(golden_path(kCutMixFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenCutMix);

}  // namespace
}  // namespace tutti
