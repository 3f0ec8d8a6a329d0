#include "commands/predict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "commands/check.h"
#include "commands/local_train.h"
#include "commands/predictions/eval_section.h"
#include "data/readers/synthetic_dataset.h"
#include "io/formats/png.h"
#include "io/hdf5/hdf5.h"
#include "job/recipe_catalogs.h"
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

TEST_F(PredictTest, WritesATableWithTheClassesOfTheScores) {
  predict("eval");
  const at::Tensor best = Hdf5File(out_).read("output").softmax(1).argmax(1);
  const at::Tensor score = std::get<0>(Hdf5File(out_).read("output").softmax(1).max(1));
  out_ = folder_.path("predictions.csv");
  EXPECT_THAT(predict("eval"), HasSubstr("50 rows: row, class, score\n"));
  std::istringstream lines(read_text(out_));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "row,class,score");
  for (int64_t row = 0; row < 50; ++row) {
    std::getline(lines, line);
    EXPECT_TRUE(
        line.starts_with(std::to_string(row + 1) + ',' + std::to_string(best[row].item<int64_t>()) + ','))
        << line;
    EXPECT_EQ(std::strtof(line.c_str() + line.rfind(',') + 1, nullptr), score[row].item<float>());
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(PredictTest, RefusesOtherEndingsBeforeAnything) {
  for (const char* name : {"predictions.txt", "predictions"}) {
    out_ = folder_.path(name);
    EXPECT_THAT([&] { predict("eval"); }, testing::ThrowsMessage<UserError>(
                                              HasSubstr("expected the ending .csv, .jsonl, .parquet, .h5")));
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
}

TEST_F(PredictTest, LeavesAnEarlierTableWhereAPredictionFails) {
  out_ = folder_.path("predictions.csv");
  write_text(out_, "earlier");
  EXPECT_THROW(predict("fewer"), UserError);
  EXPECT_EQ(read_text(out_), "earlier");
  EXPECT_FALSE(std::filesystem::exists(out_ + ".new"));
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
                                          HasSubstr("--out = \"" + path + "\": it is a file of data.")));
  }
  EXPECT_TRUE(Hdf5File(eval_).read("x").equal(inputs_));
  const std::string other = folder_.path("other.h5");
  write_hdf5(disk_, other, {hdf5_array("x", inputs_)});
  EXPECT_THAT([&] { predict_text(recipe_, {.checkpoint = run_, .data = other, .out = eval_}); },
              testing::ThrowsMessage<UserError>(HasSubstr("it is a file of data.eval.path")))
      << "beside --data";
}

TEST_F(PredictFilesTest, NameTheClasses) {
  names_["class_names"] = std::string("ant\nbee\ncat");
  train(kPredictingMlp, classes_);
  EXPECT_THAT(text_, HasSubstr("output [16, 3], with the names of the classes\n"));
  const Hdf5File file(out_);
  EXPECT_EQ(std::get<std::string>(file.at("output").attributes.at("class_names")), "ant\nbee\ncat");
}

TEST_F(PredictFilesTest, NameTheClassesOfTables) {
  names_["class_names"] = std::string("ant\nbee\ncat");
  train(kPredictingMlp, classes_);
  const std::string name = std::vector<std::string>{
      "ant", "bee", "cat"}[static_cast<std::size_t>(labelled_[0].argmax().item<int64_t>())];
  lose_labels();
  out_ = folder_.path("out.jsonl");
  predict_text(recipe_, {.checkpoint = run_, .out = out_});
  EXPECT_THAT(read_text(out_), testing::StartsWith(R"({"row": 1, "class": ")" + name + R"(", "score": 0.)"));
}

TEST_F(PredictFilesTest, MayBeOthers) {
  train(kPredictingMlp, classes_);
  const std::string other = folder_.path("other.h5");
  write_hdf5(disk_, other, {hdf5_array("x", inputs_.flip({0}))});
  predict_text(recipe_, {.checkpoint = run_, .data = other, .out = out_});
  // On some processors the bits of a row depend on its place in the batch.
  EXPECT_TRUE(Hdf5File(out_).read("output").allclose(labelled_.flip({0}), 1e-5, 1e-6));
  EXPECT_THAT([&] { predict_text(recipe_, {.checkpoint = run_, .data = other, .out = other}); },
              testing::ThrowsMessage<UserError>(HasSubstr("it is a file of data.eval.path")));
  EXPECT_THAT([&] { predict_text(recipe_, {.checkpoint = run_, .data = "nowhere.h5", .out = out_}); },
              testing::ThrowsMessage<UserError>(HasSubstr("nowhere.h5")));
  EXPECT_THAT([&] { predict_text(recipe_, {.checkpoint = run_, .data = "-", .out = out_}); },
              testing::ThrowsMessage<UserError>(HasSubstr("texts are taken by models of kind")));
}

TEST_F(PredictFilesTest, HaveSeveralLabels) {
  const at::Tensor labels = inputs_.narrow(1, 0, 3).gt(0).to(at::kFloat).contiguous();
  train("loss = \"bce_with_logits\"\n" + std::string(kPredictingMlp), labels);
  lose_labels();
  lose_training_data();
  out_ = folder_.path("out.csv");
  EXPECT_THAT(predict_text(recipe_, {.checkpoint = run_, .out = out_}),
              HasSubstr("16 rows: row, labels, score_0, score_1, score_2\n"));
}

// Pictures of two classes, by their brightness.
class PredictPicturesTest : public testing::Test {
 protected:
  PredictPicturesTest() {
    for (int i = 0; i < 6; ++i)
      picture(std::string("train/") + (i % 2 ? "light/" : "dark/") + name(i), i % 2);
    std::filesystem::copy(folder_.path("train"), folder_.path("eval"),
                          std::filesystem::copy_options::recursive);
    recipe_ = recipe_of(recipe("", section("eval")));
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    EXPECT_EQ(train_in_one_process(recipe_, options).exit_code, 0);
  }
  std::string section(const std::string& part) const {
    return "[data." + part + "]\nkind = \"image_folder\"\nmean = 0.5\nstd = 0.5\npath = \"" +
           folder_.path(part) + "\"\n";
  }
  std::string recipe(const std::string& train_keys, const std::string& eval) const {
    return "seed = 5\n[model]\n" + std::string(kPredictingMlp) + section("train") + "batch_size = 6\n" +
           train_keys + eval + "[optimizer]\nkind = \"adam\"\nlr = 0.01\n[train]\nmax_duration = \"40ep\"\n";
  }
  static std::string name(int number) { return std::to_string(number) + ".png"; }
  void picture(const std::string& file, bool is_light) const {
    const std::string path = folder_.path(file);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_text(path, png(std::vector<uint8_t>(8 * 8 * 3, is_light ? 200 : 50), 8, 8, 3));
  }
  // Files with their classes.
  std::vector<std::string> predicted(const std::string& data) const {
    predict_text(recipe_, {.checkpoint = run_, .data = data, .out = folder_.path("out.csv")});
    std::istringstream lines(read_text(folder_.path("out.csv")));
    std::vector<std::string> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(line.substr(0, line.rfind(',')));
    EXPECT_EQ(rows.at(0), "file,class");
    rows.erase(rows.begin());
    return rows;
  }

  Scratch folder_;
  std::string run_ = folder_.path("run");
  Setting recipe_;
};

TEST_F(PredictPicturesTest, HaveTheNamesOfTheirFiles) {
  EXPECT_THAT(predicted(""),
              testing::ElementsAre("dark/0.png,dark", "dark/2.png,dark", "dark/4.png,dark",
                                   "light/1.png,light", "light/3.png,light", "light/5.png,light"));
}

TEST_F(PredictPicturesTest, AreLeftOutWhereTheirFilesCannotBeRead) {
  picture("new/b.png", true);
  picture("new/d.png", false);
  for (const char* file : {"new/a.png", "new/c.png", "new/e.png"}) write_text(folder_.path(file), "broken");
  testing::internal::CaptureStderr();
  EXPECT_THAT(predicted(folder_.path("new")), testing::ElementsAre("b.png,light", "d.png,dark"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("3 files are left out, which cannot be read; the first: "),
                             HasSubstr("new/a.png: ")));
  EXPECT_THAT(
      [&] {
        predict_text(recipe_,
                     {.checkpoint = run_, .data = folder_.path("new"), .out = folder_.path("out.h5")});
      },
      testing::ThrowsMessage<UserError>(HasSubstr("a.png")))
      << "rows of arrays have no names";
}

TEST_F(PredictPicturesTest, NeedNoClasses) {
  picture("new/b.png", true);
  picture("new/a, \"1\".png", false);
  picture("new/below/c.png", true);
  const auto rows = testing::ElementsAre("\"a, \"\"1\"\".png\",dark", "b.png,light", "below/c.png,light");
  EXPECT_THAT(predicted(folder_.path("new")), rows);
  EXPECT_THAT(predicted(folder_.path("new/b.png")), testing::ElementsAre("b.png,light"));
  std::filesystem::remove_all(folder_.path("eval"));
  picture("eval/d.png", true);
  EXPECT_THAT(predicted(""), testing::ElementsAre("d.png,light")) << "the evaluator's folder";
  std::filesystem::remove_all(folder_.path("eval"));
  EXPECT_THAT(predicted(folder_.path("new")), rows) << "without the evaluator's folder";
  std::filesystem::remove_all(folder_.path("train"));
  recipe_ = read_recipe(run_ + "/recipe.toml");
  EXPECT_THAT(predicted(folder_.path("new")), rows) << "by the run's recipe";
  EXPECT_THAT([&] { predicted(folder_.path("nowhere")); },
              testing::ThrowsMessage<UserError>(HasSubstr("there is no such folder or picture")));
}

TEST_F(PredictPicturesTest, MayBeAShareOfTheTraining) {
  recipe_ = recipe_of(recipe("", "[data.eval]\nsplit = 2\nsplit_seed = 3\n"));
  for (const std::string& row : predicted("")) {
    const std::string name = row.substr(0, row.find('/'));
    EXPECT_EQ(row.substr(row.find(',') + 1), name) << row;
    EXPECT_TRUE(std::filesystem::exists(folder_.path("train/" + row.substr(0, row.find(','))))) << row;
  }
  picture("new/b.png", true);
  EXPECT_THAT(predicted(folder_.path("new")), testing::ElementsAre("b.png,light"));
}

TEST_F(PredictPicturesTest, ArePreparedAsForTrainingWithoutChance) {
  const std::string transforms =
      "transforms = [{kind = \"random_crop\", size = 8, padding = 3}, {kind = \"color_jitter\", brightness = "
      "0.9}, "
      "{kind = \"to_tensor\"}]\n";
  const Setting drawn = resolve_recipe(recipe_of(recipe(transforms, ""))).at("data").at("train");
  const EvalSection eval = eval_section_like(drawn);
  EXPECT_EQ(eval.note, "random_crop becomes center_crop, color_jitter is left out");
  EXPECT_EQ(eval.section.at("transforms").toml(),
            "[{kind = \"center_crop\", size = 8}, {kind = \"to_tensor\"}]");
  EXPECT_EQ(eval_section_like(resolve_recipe(recipe_of(recipe("", ""))).at("data").at("train")).note, "");
  const auto rows = predicted("");
  recipe_ = recipe_of(recipe("transforms = [{kind = \"flip\"}]\n", ""));
  EXPECT_EQ(predicted(folder_.path("eval")), rows);
}

}  // namespace
}  // namespace tutti
