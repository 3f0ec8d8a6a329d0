#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/cutout.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kCutOutFile = "cutout.h5";

std::deque<int64_t> hole_centres(const at::Tensor& tensor) {
  return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()};
}

// Rows of top, bottom, left, right.
std::vector<Box> boxes_of(const at::Tensor& stored) {
  std::vector<Box> boxes;
  for (const int64_t* row = stored.data_ptr<int64_t>(); std::ssize(boxes) < stored.size(0); row += 4)
    boxes.push_back({.top = row[0], .left = row[2], .bottom = row[1], .right = row[3]});
  return boxes;
}

class GoldenCutOut : public testing::TestWithParam<std::string> {};

// Composer takes images of PIL, uint8 [H, W, 3], too; here images are [..., H, W].
TEST_P(GoldenCutOut, CutsWhatComposerCuts) {
  const GoldenCase c(golden_path(kCutOutFile), GetParam());
  c.expect_only({"num_holes", "length", "uniform_sampling"}, {"input", "centers", "boxes"});
  c.expect_only_outputs({"input"});
  const CutOutOptions options{.num_holes = static_cast<int64_t>(c.number("num_holes")),
                              .length = c.number("length"),
                              .uniform_sampling = c.number("uniform_sampling") != 0.0};
  const at::Tensor input = c.tensor("in/input");
  const bool is_pil = input.scalar_type() == at::kByte;
  const at::Tensor images = is_pil ? input.permute({2, 0, 1}) : input;
  const auto expect_cut = [&](const at::Tensor& cut) {
    c.expect_close(is_pil ? cut.permute({1, 2, 0}) : cut, "out/input");
  };
  ScriptedDraws draws({.integer = hole_centres(c.tensor("in/centers"))});
  expect_cut(cutout_batch(images, draws, options));
  draws.expect_all_used();
  if (c.holds("in/boxes")) expect_cut(cutout_batch(images, boxes_of(c.tensor("in/boxes"))));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCutOut, testing::ValuesIn(golden_cases(golden_path(kCutOutFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenCutOut);

}  // namespace
}  // namespace tutti
