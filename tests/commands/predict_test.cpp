#include "commands/predict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "commands/check.h"
#include "commands/local_train.h"
#include "data/readers/synthetic_dataset.h"
#include "io/hdf5/hdf5.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kPredictRecipe = R"(
seed = 5
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
samples = 96
batch_size = 24
shape = [6]
[data.eval]
kind = "synthetic"
samples = 50
shape = [6]
[[evaluators]]
label = "few"
kind = "synthetic"
samples = 7
shape = [6]
[optimizer]
kind = "adam"
lr = 0.01
[train]
max_duration = "30ep"
)";

class PredictTest : public testing::Test {
 protected:
  PredictTest() {
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    train_in_one_process(recipe_, options);
  }
  std::string predict(const std::string& evaluator) const {
    return predict_text(recipe_, {.checkpoint = run_, .evaluator = evaluator, .out = out_});
  }

  Scratch folder_;
  std::string run_ = folder_.path("run"), out_ = folder_.path("predictions.h5");
  Setting recipe_ = recipe_of(kPredictRecipe);
};

TEST_F(PredictTest, WritesTheOutputsThatAreEvaluated) {
  EXPECT_THAT(predict("eval"), HasSubstr("output [50, 10]"));
  const at::Tensor scores = Hdf5File(out_).read("output");
  std::vector<int64_t> all(50);
  std::iota(all.begin(), all.end(), 0);
  const SyntheticDataset data({.samples = 50, .shape = {6}, .seed = 5});
  const double right = scores.argmax(1).eq(data.get(all, {})["target"]).to(at::kDouble).mean().item<double>();
  EXPECT_GT(right, 0.2) << "the model knows nothing: this proves nothing";
  std::ostringstream line;
  line << "MulticlassAccuracy " << right << '\n';
  EXPECT_THAT(eval_text(recipe_, run_), HasSubstr("metrics/eval/" + line.str()));
}

TEST_F(PredictTest, TakesTheDataOfTheEvaluatorNamed) {
  EXPECT_THAT(predict("few"), HasSubstr("output [7, 10]"));
  EXPECT_THAT([&] { predict("fewer"); },
              testing::ThrowsMessage<UserError>(HasSubstr("--evaluator = \"fewer\": there are eval, few")));
}

TEST_F(PredictTest, BlamesTheFileThatCannotBeWritten) {
  out_ = folder_.path("nowhere/predictions.h5");
  EXPECT_THAT([&] { predict("eval"); }, testing::ThrowsMessage<UserError>(HasSubstr("--out = ")));
}

}  // namespace
}  // namespace tutti
