#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "algorithms/surgery/ghost_batchnorm.h"
#include "models/layers/blocks.h"
#include "models/layers/statistics_rows.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kGhostFile = "ghost_batchnorm.h5";

std::shared_ptr<BatchNorm> norm_of(const GoldenCase& c) {
  const at::Tensor x = c.tensor("in/x");
  const BatchNormOptions options{.channels = x.size(1),
                                 .eps = c.number("eps"),
                                 .momentum = c.number("momentum"),
                                 .affine = c.holds("in/weights/weight")};
  if (x.dim() == 4) return std::make_shared<BatchNorm2d>(options);
  if (x.dim() == 5) return std::make_shared<BatchNorm3d>(options);
  return std::make_shared<BatchNorm1d>(options);
}

// Exactly the tensors that the case has.
void load_norm(const GoldenCase& c, BatchNorm& norm) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> own;
  for (const auto& parameter : norm.own_parameters()) own[parameter->name] = parameter->tensor;
  for (const auto& buffer : norm.own_buffers()) own[buffer->name] = buffer->tensor;
  const auto names = c.names("in/weights");
  ASSERT_EQ(names.size(), own.size()) << c.title();
  for (const std::string& name : names) {
    const at::Tensor value = c.tensor("in/weights/" + name);
    own.at(name).copy_(value.reshape(own.at(name).sizes()));
  }
}

class GoldenGhostBatchNorm : public testing::TestWithParam<std::string> {};

TEST_P(GoldenGhostBatchNorm, IsComposers) {
  const GoldenCase c(golden_path(kGhostFile), GetParam());
  c.expect_only({"eps", "ghost_batch_size", "momentum"}, {"grad_y", "weights", "x"});
  const auto norm = norm_of(c);
  Sequential model({norm});
  EXPECT_EQ(apply_ghost_batchnorm(model, static_cast<int64_t>(c.number("ghost_batch_size")),
                                  c.has("error") ? SmallBatch::kRefuse : SmallBatch::kNormalise),
            1);
  materialise(model, 1);
  load_norm(c, *norm);
  std::vector<RunningStatistics> found;
  ForwardContext context{.training = true, .statistics = &found};
  set_context(model, &context);
  const at::Tensor x = c.tensor("in/x").requires_grad_();
  if (c.has("error")) {
    EXPECT_THROW(model.forward(x), UserError) << c.title();
    return;
  }
  c.expect_only_outputs(
      {"grad", "grad_x", "num_batches_tracked", "running_mean", "running_var", "y", "y_eval"});
  const at::Tensor y = model.forward(x).tensor();
  c.expect_close(y.detach(), "out/y");
  y.backward(c.tensor("in/grad_y"));
  c.expect_close(x.grad(), "out/grad_x");
  for (const auto& parameter : norm->own_parameters())
    c.expect_close(parameter->tensor.grad(), "out/grad/" + parameter->name);

  const StatisticsRows rows(model);
  const at::Tensor row = at::zeros({rows.size()});
  rows.add(found, row, 0);
  rows.apply(row);
  for (const auto& buffer : norm->own_buffers())
    c.expect_close(buffer->tensor.reshape(c.tensor("out/" + buffer->name).sizes()), "out/" + buffer->name);
  context.training = false;
  c.expect_close(model.forward(x.detach()).tensor().detach(), "out/y_eval");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGhostBatchNorm, testing::ValuesIn(golden_cases(golden_path(kGhostFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGhostBatchNorm);

}  // namespace
}  // namespace tutti
