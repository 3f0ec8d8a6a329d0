#include "commands/predict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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

// Data of files, which may go, or lose their labels, before the prediction.
class PredictFilesTest : public testing::Test {
 protected:
  void train(const std::string& model, const at::Tensor& targets) {
    write_hdf5(disk_, train_, {hdf5_array("x", inputs_), hdf5_array("y", targets, names_)});
    write_hdf5(disk_, eval_, {hdf5_array("x", inputs_), hdf5_array("y", targets)});
    recipe_ = recipe_of("seed = 5\n[model]\n" + model + "[data.train]\nbatch_size = 8\n" + section(train_) +
                        "[data.eval]\n" + section(eval_) +
                        "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[train]\nmax_duration = \"2ep\"\n");
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    ASSERT_EQ(train_in_one_process(recipe_, options).exit_code, 0);
    labelled_ = predicted();
  }
  static std::string section(const std::string& path) {
    return "kind = \"hdf5\"\npath = \"" + path + "\"\narrays = { input = \"x\", target = \"y\" }\n";
  }
  void lose_labels() const {
    PosixDisk disk;
    write_hdf5(disk, eval_, {hdf5_array("x", inputs_)});
  }
  void lose_training_data() const { std::filesystem::remove(train_); }
  at::Tensor predicted() {
    text_ = predict_text(recipe_, {.checkpoint = run_, .out = out_});
    return Hdf5File(out_).read("output");
  }

  PosixDisk disk_;
  Scratch folder_;
  std::string run_ = folder_.path("run"), out_ = folder_.path("out.h5"), text_;
  std::string train_ = folder_.path("train.h5"), eval_ = folder_.path("eval.h5");
  at::Tensor inputs_ = at::arange(16 * 6, at::kFloat).sin().view({16, 6}), labelled_;
  at::Tensor classes_ = at::arange(16, at::kLong).remainder(3);
  Hdf5Attributes names_;
  Setting recipe_;
};

constexpr const char* kPredictingMlp = "kind = \"mlp\"\nhidden = [8]\n";

TEST_F(PredictFilesTest, NeedNoLabels) {
  train(kPredictingMlp, classes_);
  lose_labels();
  EXPECT_TRUE(predicted().equal(labelled_));
}

TEST_F(PredictFilesTest, NeedNoTrainingData) {
  train(kPredictingMlp, classes_);
  lose_training_data();
  EXPECT_TRUE(predicted().equal(labelled_)) << "with labels";
  write_hdf5(disk_, eval_, {hdf5_array("x", inputs_), hdf5_array("y", at::zeros({16}, at::kLong))});
  EXPECT_TRUE(predicted().equal(labelled_)) << "with labels of one class alone";
  lose_labels();
  EXPECT_TRUE(predicted().equal(labelled_)) << "without labels";
}

TEST_F(PredictFilesTest, HaveTheValuesOfARegression) {
  train("loss = \"mse\"\n" + std::string(kPredictingMlp), inputs_.narrow(1, 0, 4).contiguous());
  lose_labels();
  lose_training_data();
  EXPECT_TRUE(predicted().equal(labelled_));
}

TEST_F(PredictFilesTest, AreBlamedWithoutACheckpoint) {
  train(kPredictingMlp, classes_);
  lose_training_data();
  const std::string none = folder_.path("none");
  EXPECT_THAT([&] { predict_text(recipe_, {.checkpoint = none, .out = out_}); },
              testing::ThrowsMessage<UserError>(HasSubstr("data.train.path = ")));
}

TEST_F(PredictFilesTest, AreNotOverwritten) {
  train(kPredictingMlp, classes_);
  for (const std::string& path : {eval_, train_}) {
    out_ = path;
    EXPECT_THAT([&] { predicted(); }, testing::ThrowsMessage<UserError>(
                                          HasSubstr("--out = \"" + path + "\": it is the file of data.")));
  }
  EXPECT_TRUE(Hdf5File(eval_).read("x").equal(inputs_));
}

TEST_F(PredictFilesTest, NameTheClasses) {
  names_["class_names"] = std::string("ant\nbee\ncat");
  train(kPredictingMlp, classes_);
  EXPECT_THAT(text_, HasSubstr("output [16, 3], with the names of the classes\n"));
  const Hdf5File file(out_);
  EXPECT_EQ(std::get<std::string>(file.at("output").attributes.at("class_names")), "ant\nbee\ncat");
}

}  // namespace
}  // namespace tutti
