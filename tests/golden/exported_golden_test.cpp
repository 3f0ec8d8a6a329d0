// Programs of torch.export give what PyTorch gives (make_exported.py).

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/exported/exported_model.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

const char* const kExported = "exported.h5";

class ExportedGolden : public testing::TestWithParam<std::string> {
 protected:
  // With other threads sums have another order, which norms over a few numbers make large.
  ExportedGolden() : threads_(at::get_num_threads()), case_(golden_path(kExported), GetParam()) {
    ExportedOptions options{.path = golden_path("exported/" + case_.text("title") + ".pt2")};
    if (case_.has("prediction")) options.prediction = case_.text("prediction");
    const auto truth = case_.numbers("truth");
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const std::string name = std::to_string(i);
      const at::Tensor given = case_.tensor("in/" + name);
      options.inputs.push_back("array" + name);
      batch_.set("array" + name, truth[i] > 0 ? given.to(at::kBool) : given);
    }
    model_ = std::make_shared<ExportedModel>(options);
    materialise(*model_, 1);
    at::set_num_threads(1);
  }
  ~ExportedGolden() override { at::set_num_threads(threads_); }

  at::Tensor forward() { return model_->forward(batch_).tensor(); }

  double size_of(const std::string& dataset) const {
    return case_.tensor(dataset).abs().max().item<double>();
  }

  // Within so much of the largest number, or of `least` where all are smaller.
  void expect_close(const at::Tensor& got, const std::string& dataset, double tolerance,
                    double least = 0) const {
    const at::Tensor want = case_.tensor(dataset);
    ASSERT_EQ(got.sizes(), want.sizes()) << dataset;
    const double size = std::max(least, want.abs().max().item<double>()),
                 off = (got - want).abs().max().item<double>();
    EXPECT_LE(off, tolerance * size) << dataset << " of " << case_.title() << ", of size " << size;
  }

  // Before a norm they are zero but for rounding, and little beside the others.
  void expect_gradients(const at::Tensor& given, const std::string& group) const {
    (given * case_.tensor("in/probe")).sum().backward();
    double largest = 0;
    for (const std::string& name : case_.names(group))
      largest = std::max(largest, size_of(group + "/" + name));
    std::vector<std::string> names;
    for (const NamedParameter& one : parameters(*model_)) {
      const at::Tensor& gradient = one.parameter->tensor.grad();
      if (!gradient.defined()) continue;
      names.push_back(one.name);
      expect_close(gradient, group + "/" + one.name, 1e-4, 1e-2 * largest);
    }
    EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names(group)));
  }

  const int threads_;
  GoldenCase case_;
  Batch batch_;
  std::shared_ptr<ExportedModel> model_;
};

TEST_P(ExportedGolden, GivesPyTorchsOutputs) {
  const EvaluationMode evaluation(*model_);
  const at::NoGradGuard no_grad;
  expect_close(forward(), "out/evaluation", 1e-5);
}

TEST_P(ExportedGolden, GivesPyTorchsGradients) {
  const at::Tensor given = forward();
  expect_close(given.detach(), "out/training", 1e-5);
  expect_gradients(given, "out/gradients");
}

TEST_P(ExportedGolden, GivesPyTorchsGradientsInEvaluation) {
  const EvaluationMode evaluation(*model_);
  expect_gradients(forward(), "out/evaluation_gradients");
}

// Of other programs by the environment's TUTTI_GOLDEN_DIR.
INSTANTIATE_TEST_SUITE_P(Of, ExportedGolden, testing::ValuesIn(golden_cases(golden_path(kExported))),
                         [](const auto& info) {
                           return GoldenCase(golden_path(kExported), info.param).text("title");
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExportedGolden);

}  // namespace
}  // namespace tutti
