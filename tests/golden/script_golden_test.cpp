// TorchScript gives what PyTorch gives (make_scripts.py).

#include <gtest/gtest.h>

#include "models/layers/statistics_rows.h"
#include "models/script/script_model.h"
#include "tests/golden/program_golden.h"

namespace tutti {
namespace {

const char* const kScripts = "scripts.h5";

class ScriptGolden : public ProgramGolden {
 protected:
  ScriptGolden() : ProgramGolden(kScripts) {
    use(std::make_shared<ScriptModel>(options<ScriptOptions>("scripts/" + case_.text("title") + ".pt")));
  }
};

TEST_P(ScriptGolden, GivesPyTorchsOutputs) { expect_outputs(); }
TEST_P(ScriptGolden, GivesPyTorchsGradients) { expect_training(); }
TEST_P(ScriptGolden, GivesPyTorchsGradientsInEvaluation) { expect_evaluation_gradients(); }

// The pass itself changes none; what it found does so later.
TEST_P(ScriptGolden, GivesPyTorchsBuffersOnceTheStepCounts) {
  std::map<std::string, at::Tensor> before;
  for (const NamedBuffer& one : buffers(*model_)) before[one.name] = one.buffer->tensor.clone();
  std::vector<RunningStatistics> found;
  const ForwardContext context{.statistics = &found};
  const ContextScope scope(*model_, context);
  forward();
  for (const NamedBuffer& one : buffers(*model_))
    EXPECT_TRUE(one.buffer->tensor.equal(before[one.name])) << one.name;
  const StatisticsRows rows(*model_);
  if (rows.size() > 0) {
    const at::Tensor row = at::zeros({rows.size()});
    rows.add(found, row, 0);
    rows.apply(row);
  }
  for (const NamedBuffer& one : buffers(*model_))
    if (one.buffer->persistent)
      expect_close(one.buffer->tensor.to(at::kFloat), "out/buffers/" + one.name, 1e-5, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Of, ScriptGolden, testing::ValuesIn(golden_cases(golden_path(kScripts))),
                         [](const auto& info) {
                           return GoldenCase(golden_path(kScripts), info.param).text("title");
                         });

}  // namespace
}  // namespace tutti
