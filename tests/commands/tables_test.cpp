#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "commands/check.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/hdf5/hdf5.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kTableRecipe = R"(
seed = 5
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "csv"
path = "TRAIN"
target = "color"
one_hot = ["shape"]
normalize = true
missing = "mean"
batch_size = 16
[data.eval]
kind = "csv"
path = "EVAL"
[optimizer]
kind = "adam"
lr = 0.05
[train]
max_duration = "10ep"
)";

// A run on tables whose classes follow from a column of large numbers: without its mean and deviation,
// and those of the training, no network of eight units learns them.
class TableRunsTest : public testing::Test {
 protected:
  TableRunsTest() {
    write(train_, 0, 96, "size,weight,shape,color\n");
    write(eval_, 0, 30, "size,weight,shape,color\n");
  }

  // Rows from `first` on; `columns` says which, and how many rows there are.
  static void write(const std::string& path, int first, int rows, const std::string& columns) {
    std::string text = columns;
    for (int i = first; i < first + rows; ++i) {
      const int at = i % 3;
      text += std::to_string(1'000'000 + 10 * at + i % 2) + "," + (i % 7 == 0 ? "" : std::to_string(i % 5)) +
              "," + (i % 2 == 0 ? "disc" : "cube");
      if (columns.find("color") != std::string::npos) text += std::string(",") + kColors[at];
      text += '\n';
    }
    write_text(path, text);
  }

  void train(const std::string& resume = "") {
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    options.resume = resume;
    ASSERT_EQ(train_in_one_process(recipe(), options).exit_code, 0);
  }
  Setting recipe() const {
    std::string text = kTableRecipe;
    text.replace(text.find("TRAIN"), 5, train_);
    text.replace(text.find("EVAL"), 4, eval_);
    text.replace(text.find("10ep"), 4, duration_);
    return recipe_of(text);
  }
  // The classes predicted for the evaluation's rows.
  at::Tensor predicted() {
    text_ = predict_text(recipe(), {.checkpoint = run_, .out = out_});
    return Hdf5File(out_).read("output").argmax(1);
  }

  std::string class_names() const {
    const Hdf5File file(out_);
    return std::get<std::string>(file.at("output").attributes.at("class_names"));
  }

  static constexpr const char* kColors[] = {"red", "blue", "green"};

  Scratch folder_;
  std::string run_ = folder_.path("run"), out_ = folder_.path("out.h5"), text_, duration_ = "10ep";
  std::string train_ = folder_.path("train.csv"), eval_ = folder_.path("eval.csv");
};

TEST_F(TableRunsTest, PredictNewRowsByTheTrainingsNumbersAndClasses) {
  train();
  EXPECT_THAT(eval_text(recipe(), run_), HasSubstr("MulticlassAccuracy 1\n"));
  const at::Tensor wanted = at::tensor({2, 0, 1}, at::kLong).repeat({4});  // red, blue, green, sorted
  EXPECT_TRUE(at::equal(predicted().slice(0, 0, 12), wanted));
  EXPECT_EQ(class_names(), "blue\ngreen\nred");

  std::filesystem::remove(train_);
  write(eval_, 0, 1, "size,weight,shape\n");  // one row has no deviation, and one class
  EXPECT_TRUE(at::equal(predicted(), wanted.slice(0, 0, 1))) << "without training data and labels";
  write(train_, 1, 40, "size,weight,shape,color\n");
  EXPECT_TRUE(at::equal(predicted(), wanted.slice(0, 0, 1))) << "with other training data since";
  write(eval_, 0, 30, "size,weight,shape,color\n");
  EXPECT_THAT(eval_text(recipe(), run_), HasSubstr("MulticlassAccuracy 1\n"));
}

TEST_F(TableRunsTest, PredictionsDoNotLookAtTargets) {
  duration_ = "1ep";
  train();
  write_text(eval_, "size,weight,shape,color\n1000000,1,disc,mauve\n1000010,2,cube,\n");
  EXPECT_EQ(predicted().size(0), 2);
}

TEST_F(TableRunsTest, ResumeOnTheSameNumbersAlone) {
  duration_ = "5ep";
  train();
  duration_ = "10ep";
  train("auto");
  EXPECT_THAT(eval_text(recipe(), run_), HasSubstr("MulticlassAccuracy 1\n"));
  duration_ = "11ep";
  std::string text = read_text(train_);
  text.replace(text.find("1000010"), 7, "1000019");  // row 4, of which the digest reads no number
  write_text(train_, text);
  EXPECT_THAT([&] { train("auto"); },
              testing::ThrowsMessage<UserError>(HasSubstr("it was trained on other data")));
}

TEST_F(TableRunsTest, CheckSaysHowMuchMemory) {
  // 96 rows of 4 inputs and a class, and 30.
  EXPECT_THAT(check_text(recipe(), {}), HasSubstr("data     0.003024 MB in the memory of each process"));
}

// Recipes of a small BERT on tables of texts, evaluated on another table.
class TextTableRuns : public testing::Test {
 protected:
  Setting recipe(const std::string& model, const std::string& train, const std::string& eval) const {
    const std::string text_table = "kind = 'text_table'\ntokenizer = '" TUTTI_SOURCE_DIR
                                   "/tests/golden/tokenizers/bert.json'\n"
                                   "sequence_length = 8\n";
    return recipe_of(
        "seed = 5\n[model]\nkind = 'bert_classification'\nvocab_size = 960\nhidden_size = 8\n"
        "num_hidden_layers = 1\nnum_attention_heads = 1\nintermediate_size = 8\nmax_position_embeddings = 8\n"
        "hidden_dropout_prob = 0.0\nattention_probs_dropout_prob = 0.0\n" +
        model + "[optimizer]\nkind = 'adam'\nlr = 0.03\n[train]\nmax_duration = '4ba'\n[data.train]\n" +
        text_table + train + "batch_size = 2\n[data.eval]\n" + text_table + eval);
  }
  void write(const std::string& name, const std::string& text) const { write_text(folder_.path(name), text); }
  std::string path(const std::string& name) const { return "path = '" + folder_.path(name) + "'\n"; }

  Scratch folder_;
};

TEST_F(TextTableRuns, PredictTextsWithoutTargets) {
  write("train.csv", "text,mood\nbe glad,glad\nbe sad,sad\nso so,so\nlord,so\n");
  write("texts.jsonl", R"({"text": "be glad"})");
  const std::string out = folder_.path("out.h5");
  predict_text(recipe("", path("train.csv") + "target = 'mood'\n", path("texts.jsonl")), {.out = out});
  const Hdf5File file(out);
  EXPECT_EQ(file.read("output").sizes(), (Shape{1, 3}));
  EXPECT_EQ(std::get<std::string>(file.at("output").attributes.at("class_names")), "glad\nsad\nso");
}

TEST_F(TextTableRuns, PredictAndMeasureValuesAndSeveralLabels) {
  write("train.csv", "text,a,b,c\nbe glad,0.5,1,0\nbe sad,-1.25,0,1\nso so,0.125,1,0\nlord,2.75,1,1\n");
  const std::string out = folder_.path("out.h5"), run = folder_.path("run");
  const auto expect = [&](const std::string& loss, const std::string& target, const std::string& measure,
                          const std::function<at::Tensor(const at::Tensor&)>& formula) {
    const Setting all =
        recipe("loss = '" + loss + "'\n", path("train.csv") + "target = " + target + "\n", path("train.csv"));
    std::filesystem::remove_all(run);
    train_in_one_process(all, {.ranks = 2, .run_dir = run, .quiet = true});
    predict_text(all, {.checkpoint = run, .out = out});
    const std::string measured = eval_text(all, run);
    const auto found = measured.find(measure + " ");
    ASSERT_NE(found, std::string::npos) << measured;
    EXPECT_NEAR(std::stod(measured.substr(found + measure.size())),
                formula(Hdf5File(out).read("output")).item<double>(), 1e-3)
        << measured;
  };
  const at::Tensor a = at::tensor({0.5F, -1.25F, 0.125F, 2.75F}).view({4, 1}),
                   b = at::tensor({1.0F, 0.0F, 1.0F, 1.0F}).view({4, 1}),
                   c = at::tensor({0.0F, 1.0F, 0.0F, 1.0F}).view({4, 1});
  const auto squares = [](const at::Tensor& apart) { return apart.square().mean(); };
  expect("mse", "'a'", "MeanSquaredError", [&](const at::Tensor& found) { return squares(found - a); });
  expect("smooth_l1", "['a', 'b']", "MeanSquaredError", [&](const at::Tensor& found) {
    return squares(found - at::cat({a, b}, 1));
  });
  expect("bce_with_logits", "['b', 'c']", "loss", [&](const at::Tensor& found) {
    const at::Tensor ones = at::cat({b, c}, 1);
    return -(ones * found.sigmoid().log() + (1 - ones) * (-found).sigmoid().log()).mean();
  });
}

}  // namespace
}  // namespace tutti
