// Programs of torch.export give what PyTorch gives (make_exported.py).

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

TEST_P(ExportedGolden, GivesPyTorchsOutputs) { expect_outputs(); }
TEST_P(ExportedGolden, GivesPyTorchsGradients) { expect_training(); }
TEST_P(ExportedGolden, GivesPyTorchsGradientsInEvaluation) { expect_evaluation_gradients(); }

// Of other programs by the environment's TUTTI_GOLDEN_DIR.
INSTANTIATE_TEST_SUITE_P(Of, ExportedGolden, testing::ValuesIn(golden_cases(golden_path(kExported))),
                         [](const auto& info) {
                           return GoldenCase(golden_path(kExported), info.param).text("title");
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExportedGolden);

}  // namespace
}  // namespace tutti
