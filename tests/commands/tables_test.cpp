#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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

TEST(TextTableRuns, PredictTextsWithoutTargets) {
  const Scratch folder;
  const std::string train = folder.path("train.csv"), texts = folder.path("texts.jsonl");
  write_text(train, "text,mood\nbe glad,glad\nbe sad,sad\nso so,so\nlord,so\n");
  write_text(texts, R"({"text": "be glad"})");
  const std::string text_table = "kind = 'text_table'\ntokenizer = '" TUTTI_SOURCE_DIR
                                 "/tests/golden/tokenizers/bert.json'\n"
                                 "sequence_length = 8\n";
  const Setting recipe = recipe_of(
      "seed = 5\n[model]\nkind = 'bert_classification'\nvocab_size = 960\nhidden_size = 8\n"
      "num_hidden_layers = 1\nnum_attention_heads = 1\nintermediate_size = 8\nmax_position_embeddings = 8\n"
      "num_classes = 3\n[optimizer]\nkind = 'adam'\n[train]\nmax_duration = '2ba'\n[data.train]\n" +
      text_table + "path = '" + train + "'\ntarget = 'mood'\nbatch_size = 2\n[data.eval]\n" + text_table +
      "path = '" + texts + "'\n");
  const std::string out = folder.path("out.h5");
  predict_text(recipe, {.out = out});
  const Hdf5File file(out);
  EXPECT_EQ(file.read("output").sizes(), (Shape{1, 3}));
  EXPECT_EQ(std::get<std::string>(file.at("output").attributes.at("class_names")), "glad\nsad\nso");
}

}  // namespace
}  // namespace tutti
