#include "tests/golden/golden_images.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/transforms/pixels.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {

std::deque<double> drawn_numbers(const at::Tensor& draws) {
  const at::Tensor drawn = draws.masked_select(draws.isnan().logical_not()).to(at::kDouble);
  return {drawn.data_ptr<double>(), drawn.data_ptr<double>() + drawn.numel()};
}

std::deque<int64_t> whole_numbers(const at::Tensor& integers) {
  const at::Tensor flat = integers.to(at::kLong).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

std::vector<at::Tensor> pixels_of_each(const at::Tensor& images) {
  if (!images.is_floating_point()) return {images};
  if (images.dim() == 3) return {to_pixels(images)};
  std::vector<at::Tensor> each;
  for (const at::Tensor& image : images.unbind()) each.push_back(to_pixels(image));
  return each;
}

void expect_same_image(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  ASSERT_EQ(got.scalar_type(), at::kByte) << what;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_TRUE(at::equal(got, want)) << what << ": " << got.ne(want).sum().item<int64_t>() << " bytes differ";
}

void expect_operation(const ImageOperation& operation, double level, const at::Tensor& drawn,
                      double effective, const at::Tensor& image, const at::Tensor& want,
                      const std::string& what) {
  ScriptedDraws draws({.uniform = drawn_numbers(drawn)});
  const double parameter = operation.draw(level, image, draws);
  draws.expect_all_used();
  EXPECT_TRUE(parameter == effective || (std::isnan(parameter) && std::isnan(effective)))
      << what << ": " << operation.name << " of " << parameter << ", not " << effective;
  expect_same_image(operation.apply(image, effective), want, what + ": " + std::string(operation.name));
}

GoldenOperations::GoldenOperations(const GoldenCase& golden)
    : title_(golden.title()),
      severity_(golden.number("severity")),
      set_(augmentation_set(golden.text("augmentation_set"))),
      index_(golden.tensor("in/op_index")),
      draws_(golden.tensor("in/op_draws")),
      effective_(golden.tensor("in/op_effective")),
      steps_(golden.tensor("out/steps")) {
  std::vector<std::string> names;
  for (const ImageOperation& operation : set_) names.emplace_back(operation.name);
  EXPECT_EQ(names, parts_of(golden.text("ops"))) << title_;
}

void GoldenOperations::expect_next(at::Tensor image, int64_t count) {
  ASSERT_LE(next_ + count, index_.numel()) << title_;
  for (const int64_t last = next_ + count; next_ < last; ++next_) {
    const ImageOperation& operation = set_.at(static_cast<size_t>(index_[next_].item<int64_t>()));
    const at::Tensor want = steps_[next_];
    expect_operation(operation, severity_, draws_[next_], effective_[next_].item<double>(), image, want,
                     title_ + ", operation " + std::to_string(next_));
    image = want;
  }
}

void GoldenOperations::expect_all_seen() const { EXPECT_EQ(next_, index_.numel()) << title_; }

}  // namespace tutti
