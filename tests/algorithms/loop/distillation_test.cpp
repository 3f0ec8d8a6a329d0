#include "algorithms/loop/distillation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

// temperature^2 sum_i counted_i sum_c p_ic (log p_ic - log q_ic) / sum_i counted_i, number by number.
double by_formula(const at::Tensor& scores, const at::Tensor& of_teacher, const at::Tensor& counted,
                  double temperature) {
  const auto probability = [&](const at::Tensor& row, int64_t chosen) {
    double sum = 0;
    for (int64_t c = 0; c < row.size(0); ++c) sum += std::exp(row[c].item<double>() / temperature);
    return std::exp(row[chosen].item<double>() / temperature) / sum;
  };
  double total = 0;
  for (int64_t i = 0; i < scores.size(0); ++i)
    for (int64_t c = 0; c < scores.size(1); ++c) {
      const double p = probability(of_teacher[i], c), q = probability(scores[i], c);
      total += counted[i].item<double>() * p * (std::log(p) - std::log(q));
    }
  return temperature * temperature * total / counted.sum().item<double>();
}

TEST(DistillationLoss, IsTheDivergenceOfSoftScores) {
  const at::Tensor scores = at::linspace(-3, 4, 12).sin().mul(5).view({4, 3}),
                   of_teacher = at::linspace(2, -5, 12).cos().mul(4).view({4, 3});
  const at::Tensor counted = at::tensor({1.0F, 0.0F, 1.0F, 0.5F});
  for (const double temperature : {1.0, 2.0, 5.0})
    EXPECT_NEAR(distillation_loss(scores, of_teacher, counted, temperature).item<double>(),
                by_formula(scores, of_teacher, counted, temperature), 1e-4);
  EXPECT_NEAR(distillation_loss(scores, scores, counted, 2.0).item<double>(), 0, 1e-6);
}

// temperature (q - p) for each item, over their number.
TEST(DistillationLoss, HasTheGradientOfSoftScores) {
  const at::Tensor scores = at::linspace(-3, 4, 8).sin().view({2, 4}).requires_grad_();
  const at::Tensor of_teacher = at::linspace(2, -5, 8).cos().view({2, 4});
  distillation_loss(scores, of_teacher, at::ones({2}), 3.0).backward();
  const at::Tensor wanted = (at::softmax(scores / 3, 1) - at::softmax(of_teacher / 3, 1)) * 3.0 / 2;
  EXPECT_TRUE(at::allclose(scores.grad(), wanted.detach(), 1e-4, 1e-6));
}

TEST(DistillationLoss, LeavesOutClassesThatATeacherExcludes) {
  const at::Tensor of_teacher = at::tensor({0.0F, 1.0F, -INFINITY}).unsqueeze(0);
  EXPECT_TRUE(
      std::isfinite(distillation_loss(at::zeros({1, 3}), of_teacher, at::ones({1}), 2.0).item<double>()));
}

}  // namespace
}  // namespace tutti
