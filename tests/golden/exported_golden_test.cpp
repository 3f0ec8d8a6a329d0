// Programs of torch.export give what PyTorch gives (make_exported.py).

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "models/exported/exported_model.h"
#include "tests/golden/program_golden.h"

namespace tutti {
namespace {

const char* const kExported = "exported.h5";

class ExportedGolden : public ProgramGolden {
 protected:
  ExportedGolden() : ProgramGolden(kExported) {
    use(std::make_shared<ExportedModel>(
        options<ExportedOptions>("exported/" + case_.text("title") + ".pt2")));
  }
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
