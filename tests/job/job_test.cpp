#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "data/readers/synthetic_dataset.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/make_job.h"
#include "job/records/run_journal.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string with_data(const std::string& model, const std::string& train, const std::string& eval) {
  return "seed = 1\n[model]\n" + model + "\n[data.train]\nbatch_size = 2\n" + train + "\n[data.eval]\n" +
         eval + "\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n";
}

class JobTest : public testing::Test {
 protected:
  std::string why_refused(const std::string& recipe) const {
    JobOptions options;
    options.run_dir = folder_.path("run");
    return why_refused(recipe, options);
  }
  std::string why_refused(const std::string& recipe, const JobOptions& options) const {
    try {
      make_job(recipe_of(recipe), options);
    } catch (const RunError& error) {
      return error.what();
    }
    return "it was taken";
  }
  std::string hdf5(const std::string& name, const std::vector<Hdf5Array>& arrays) const {
    PosixDisk disk;
    write_hdf5(disk, folder_.path(name), arrays);
    return "kind = 'hdf5'\npath = '" + (folder_.path(name)) + "'";
  }

  Scratch folder_;
};

TEST_F(JobTest, NoncesSortByAttemptThoughTheClockIsSetBack) {
  const std::string run = folder_.path("run");
  const std::string first = fresh_nonce(run, 1'700'000'000'999);
  EXPECT_THAT(first, StartsWith("20231114T221320.999Z-"));
  EXPECT_THAT(fresh_nonce(run, 1'600'000'000'000), StartsWith("20200913T122640.000Z-")) << "no journal yet";
  for (const std::string& name : {first, std::string("9-003")})
    PosixDisk().make_folders(journal_folder(run, name));
  EXPECT_THAT(fresh_nonce(run, 1'600'000'000'000), StartsWith("20231114T221321.000Z-"));
  EXPECT_THAT(fresh_nonce(run, 1'800'000'000'000), StartsWith("20270115T080000.000Z-"));
}

constexpr const char* kMlp = "kind = 'mlp'\nhidden = [4]";
constexpr const char* kPoints = "kind = 'synthetic'\nshape = [12]";

TEST_F(JobTest, EvaluationDataOfAnotherDtypeAreRefusedOfAnotherShapeNotYet) {
  EXPECT_EQ(why_refused(with_data(kMlp, kPoints, kPoints)), "it was taken");
  EXPECT_EQ(why_refused(with_data(kMlp, kPoints, "kind = 'synthetic'\nshape = [3, 4]")), "it was taken");
  const std::string gpt = "kind = 'gpt'\nn_positions = 8";
  const std::string words = "kind = 'synthetic'\ntargets = 'sequence'\nshape = ";
  EXPECT_EQ(why_refused(with_data(gpt, words + "[8]", words + "[7]")), "it was taken");
  EXPECT_THAT(why_refused(with_data(kMlp, kPoints, words + "[12]")),
              AllOf(StartsWith("test.toml:12: data.eval.shape = [12]: "), HasSubstr("float32 [12]"),
                    HasSubstr("here it is int64 [12]")));
}

TEST_F(JobTest, ATimeInTokensOfAModelThatCountsNoneIsRefused) {
  const auto with_times = [](const std::string& recipe, const std::string& duration) {
    return recipe.substr(0, recipe.find("'1ba'")) + "'" + duration + "'\n";
  };
  const std::string points = with_data(kMlp, kPoints, kPoints);
  EXPECT_THAT(
      why_refused(with_times(points, "7tok")),
      AllOf(StartsWith("test.toml:15: train.max_duration = \"7tok\": "), HasSubstr("mlp counts no tokens")));
  EXPECT_EQ(why_refused(with_times(points, "0tok")), "it was taken");
  EXPECT_THAT(why_refused(points + "[scheduler]\nkind = 'linear'\nt_max = '50tok'\n"),
              HasSubstr("scheduler.t_max"));
  EXPECT_THAT(why_refused(points + "[[callbacks]]\nkind = 'activation_monitor'\ninterval = '9tok'\n"),
              HasSubstr("callbacks.0.interval"));
  EXPECT_THAT(why_refused(points + "[[loggers]]\nkind = 'console'\nlog_interval = '9tok'\n"),
              HasSubstr("loggers.0.log_interval"));
  const std::string words = "kind = 'synthetic'\ntargets = 'sequence'\nshape = [8]";
  EXPECT_EQ(why_refused(with_times(with_data("kind = 'gpt'\nn_positions = 8", words, words), "7tok")),
            "it was taken");
}

TEST_F(JobTest, ComponentsOfAProgramBelongToAllRanks) {
  JobOptions options;
  options.run_dir = folder_.path("run");
  const TensorTree::Children points = {{"input", at::zeros({24, 12})},
                                       {"target", at::zeros({24}, at::kLong)}};
  options.components.data = {{"train", std::make_shared<TensorDataset>(points, 10)}};
  EXPECT_EQ(why_refused(with_data(kMlp, "kind = 'program'", kPoints), options), "it was taken");
  EXPECT_THAT(why_refused(with_data(kMlp, "kind = 'program'\nsampling = 'own'", kPoints), options),
              HasSubstr("data.train.sampling = \"own\": per-rank datasets are files"));
}

TEST_F(JobTest, TheRecipesTransformsApplyToWhatAProgramBrings) {
  JobOptions options;
  options.run_dir = folder_.path("run");
  const TensorTree::Children images = {{"input", at::zeros({24, 6, 6, 3}, at::kByte)},
                                       {"target", at::zeros({24}, at::kLong)}};
  const auto data = std::make_shared<TensorDataset>(images, 10);
  options.components.data = {{"train", data}, {"eval", data}};
  const std::string program = "kind = 'program'\n", to_tensor = ".transforms]]\nkind = 'to_tensor'";
  const std::string train = program + "[[data.train" + to_tensor, eval = program + "[[data.eval" + to_tensor;
  EXPECT_EQ(why_refused(with_data(kMlp, train, eval), options), "it was taken");
  EXPECT_THAT(why_refused(with_data(kMlp, program, program), options),
              AllOf(StartsWith("test.toml:3: model.kind = \"mlp\": expected 'input' as float32"),
                    HasSubstr("[[data.train.transforms]] with to_tensor makes float32 of it")));
  EXPECT_THAT(why_refused(with_data(kMlp, train, program), options),
              AllOf(HasSubstr("data.eval.kind = \"program\": expected samples as in [data.train]"),
                    HasSubstr("uint8 [6, 6, 3]; [[data.eval.transforms]] with to_tensor makes float32")));
  options.components.make_model = [](const Setting&, const SampleSpec& samples) -> std::shared_ptr<Model> {
    throw UserError("a model for " + samples.describe("input"));
  };
  EXPECT_THAT(why_refused(with_data("kind = 'program'", train, eval), options),
              HasSubstr("a model for float32 [3, 6, 6]"));
}

// Transforms have planes turned to [height, width, channels], which the model is shown.
TEST_F(JobTest, AnErrorForBytesInPlanesNamesTheRightLayout) {
  JobOptions options;
  options.run_dir = folder_.path("run");
  const TensorTree::Children planes = {{"input", at::zeros({24, 3, 6, 6}, at::kByte)},
                                       {"target", at::zeros({24}, at::kLong)}};
  const auto data = std::make_shared<TensorDataset>(planes, 10);
  options.components.data = {{"train", data}, {"eval", data}};
  const std::string program = "kind = 'program'\n", layout = "layout = 'NCHW'\n";
  const std::string flip = "[[data.train.transforms]]\nkind = 'flip'";
  EXPECT_THAT(why_refused(with_data(kMlp, program + flip, program), options),
              AllOf(HasSubstr("the data's is uint8 [6, 6, 3] a sample"),
                    HasSubstr("(\"NCHW\" if the file has [channels, height, width])")));
  EXPECT_EQ(why_refused(with_data(kMlp, program + layout + flip, program + layout), options), "it was taken");
}

TEST_F(JobTest, IgnoredTargetsAreNoClassesOfAnyData) {
  const at::Tensor inputs = at::rand({8, 3});
  const std::string data =
      hdf5("ignored.h5",
           {hdf5_array("input", inputs), hdf5_array("target", at::tensor({0, 1, 2, 255, 0, 1, 2, 255}))});
  const std::string model = std::string(kMlp) + "\nignore_index = 255";
  JobOptions options;
  options.run_dir = folder_.path("run");
  const Job job = make_job(recipe_of(with_data(model, data, data)), options);
  EXPECT_EQ(job.spec().classes, 3);
  EXPECT_EQ(job.train->get(std::vector<int64_t>{3}, {})["target"].item<int64_t>(), -100);
  EXPECT_EQ(job.evaluators[0].data->get(std::vector<int64_t>{3}, {})["target"].item<int64_t>(), -100);
  EXPECT_THAT(
      why_refused(with_data(model + "\nloss = 'binary_cross_entropy_with_logits'", data, data)),
      HasSubstr(
          "test.toml:5: model.ignore_index = 255: binary_cross_entropy_with_logits leaves no target out"));
  const std::string metric = data + "\n[[data.eval.metrics]]\nkind = 'CrossEntropy'\nignore_index = 255";
  EXPECT_THAT(why_refused(with_data(model, data, metric)),
              HasSubstr("ignore_index = 255: model.ignore_index maps all ignored targets to -100"));
}

TEST_F(JobTest, ARunNameIsThatOfAFolderBelowRuns) {
  JobOptions options;
  options.makes_folders = false;
  const std::string recipe = with_data(kMlp, kPoints, kPoints);
  for (const std::string name : {"", ".", "..", "a/../..", "../other"})
    EXPECT_THAT(why_refused("run_name = '" + name + "'\n" + recipe, options),
                HasSubstr("run_name = \"" + name + "\": expected the name of a folder below runs/"));
  EXPECT_THAT(why_refused("run_name = \"a\\nb\"\n" + recipe, options), HasSubstr("without line breaks"));
  for (const std::string name : {"a", "a/b", "..a", "a b"})
    EXPECT_EQ(why_refused("run_name = '" + name + "'\n" + recipe, options), "it was taken") << name;
  options.run_dir = folder_.path("run");
  EXPECT_EQ(why_refused("run_name = '..'\n" + recipe, options), "it was taken");
  const std::string long_name(300, 'x');
  options.run_dir = "";
  EXPECT_THAT(why_refused("run_name = '" + long_name + "'\n" + recipe, options),
              AllOf(HasSubstr("run_name = \"xxx"), HasSubstr("expected names of at most 255 bytes")));
  options.run_dir = long_name;
  EXPECT_THAT(why_refused(recipe, options), HasSubstr("--run-dir"));
}

TEST_F(JobTest, AFolderWhoseNameIsNotUtf8IsRefused) {
  JobOptions options;
  options.run_dir = folder_.path("a\xff");
  EXPECT_THAT(why_refused(with_data(kMlp, kPoints, kPoints), options),
              AllOf(StartsWith("command line: --run-dir = "), HasSubstr("expected a path in UTF-8")));
}

TEST_F(JobTest, EvaluationDataOfAnotherDtypeIsRefused) {
  const at::Tensor labels = at::arange(4, at::kLong);
  const std::string bytes =
      hdf5("bytes.h5", {hdf5_array("input", at::ones({4, 12}, at::kByte)), hdf5_array("target", labels)});
  EXPECT_THAT(why_refused(with_data(kMlp, kPoints, bytes)),
              AllOf(StartsWith("test.toml:11: data.eval.path = "), HasSubstr("here it is uint8 [12]")));
  EXPECT_THAT(why_refused(with_data(kMlp, kPoints, hdf5("half.h5", {hdf5_array("target", labels)}))),
              HasSubstr("there is no 'input' in it"));
}

TEST_F(JobTest, EvaluationTokensMayBeNewButInTheVocabulary) {
  const auto tokens = [&](const std::string& name, int64_t largest) {
    const at::Tensor all = at::full({4, 8}, largest, at::kLong);
    return hdf5(name, {hdf5_array("input", all), hdf5_array("target", all)});
  };
  const std::string gpt = "kind = 'gpt'\nn_positions = 8\nvocab_size = 50\nn_embd = 8\nn_head = 1";
  EXPECT_EQ(why_refused(with_data(gpt, tokens("a.h5", 40), tokens("b.h5", 49))), "it was taken");
  EXPECT_THAT(why_refused(with_data(gpt, tokens("a.h5", 40), tokens("c.h5", 50))),
              AllOf(HasSubstr("data.eval.path = "), HasSubstr("model.vocab_size = 50"),
                    HasSubstr("tokens up to 50")));
}

TEST_F(JobTest, MicrobatchesWithoutSamplesAreSaid) {
  const std::string recipe = with_data(kMlp, "kind = 'synthetic'\nsamples = 24\nshape = [12]", kPoints);
  const auto said = [&](int world, const std::string& grad_accum, int64_t batch = 24) {
    JobOptions options;
    options.run_dir = folder_.path("run");
    options.world = world;
    std::string text = recipe + "grad_accum = " + grad_accum + "\n";
    text.replace(text.find("batch_size = 2"), 14, "batch_size = " + std::to_string(batch));
    return job_advice(make_job(recipe_of(text), options));
  };
  EXPECT_THAT(said(1, "24"), IsEmpty());
  EXPECT_THAT(said(5, "5"), IsEmpty()) << "a rank has 4 samples, and others have 5";
  EXPECT_THAT(said(1, "'auto'"), IsEmpty());
  EXPECT_THAT(said(1, "[[0, 1], [7, 24]]"), IsEmpty());
  EXPECT_THAT(
      said(1, "1000000"),
      ElementsAre("test.toml:17: train.grad_accum = 1000000: a rank has at most 24 samples of a batch, "
                  "and further microbatches are empty"));
  EXPECT_THAT(said(5, "6"), ElementsAre(HasSubstr("train.grad_accum = 6: a rank has at most 5 samples")));
  EXPECT_THAT(said(1, "[[0, 1], [7, 25]]"), ElementsAre(HasSubstr("at most 24 samples")));
  EXPECT_THAT(said(1, "25", 96), ElementsAre(HasSubstr("at most 24 samples"))) << "the data are shorter";
}

TEST_F(JobTest, EvaluationLabelsBeyondTheTrainedOnesNeedClassesInTheRecipe) {
  const std::string more = std::string(kPoints) + "\nclasses = 12";
  EXPECT_THAT(why_refused(with_data(kMlp, kPoints, more)), HasSubstr("its labels reach 11"));
  EXPECT_EQ(why_refused(with_data(std::string(kMlp) + "\nnum_classes = 12", kPoints, more)), "it was taken");
}

TEST_F(JobTest, LabelsFrom1OnAreSaid) {
  const at::Tensor labels = at::tensor({3, 1, 2, 1}, at::kLong);
  const auto file = [&](const std::string& name, const at::Tensor& target) {
    return hdf5(name, {hdf5_array("input", at::rand({4, 2})), hdf5_array("target", target)});
  };
  const std::string from_1 = file("a.h5", labels), from_0 = file("b.h5", labels - 1);
  const auto said = [&](const std::string& train, const std::string& eval) {
    JobOptions options;
    options.run_dir = folder_.path("run");
    return job_advice(make_job(recipe_of(with_data(kMlp, train, eval)), options));
  };
  EXPECT_THAT(said(from_1, from_1),
              ElementsAre("data.train: its smallest label is 1, so class 0 has no samples; "
                          "first_class = 1, here and in evaluations, numbers classes from 0"));
  const std::string numbered = from_1 + "\nfirst_class = 1";
  EXPECT_THAT(said(numbered, numbered), IsEmpty());
  EXPECT_THAT(said(from_0, from_0), IsEmpty());
  const std::string ignored = file("c.h5", labels.masked_fill(labels.eq(1), -100));
  EXPECT_THAT(said(ignored, ignored), ElementsAre(HasSubstr("its smallest label is 2")));
  EXPECT_THAT(why_refused(with_data(kMlp, numbered, from_1)),
              HasSubstr("expected first_class = 1, as [data.train] has it"));
  EXPECT_THAT(why_refused(with_data(kMlp, from_0, numbered)),
              HasSubstr("data.eval.first_class = 1: expected first_class = 0"));
}

TEST_F(JobTest, MostClassesWithoutSamplesAreSaid) {
  const auto file = [&](const at::Tensor& target) {
    return hdf5("a.h5", {hdf5_array("input", at::rand({target.size(0), 2})), hdf5_array("target", target)});
  };
  const auto said = [&](const std::string& data, const std::string& model = kMlp) {
    JobOptions options;
    options.run_dir = folder_.path("run");
    return job_advice(make_job(recipe_of(with_data(model, data, data)), options));
  };
  const std::string damaged = file(at::tensor({0, 1, 16'000, 1, 2}, at::kLong));
  EXPECT_THAT(
      said(damaged),
      ElementsAre("data.train: its largest label is 16000, of sample 2, so 15,997 of 16,001 classes have "
                  "no samples; num_classes, here or in [model], makes an error of labels beyond it"));
  EXPECT_THAT(said(damaged, std::string(kMlp) + "\nnum_classes = 20000"), IsEmpty());
  EXPECT_THAT(said(damaged + "\nnum_classes = 20000"), IsEmpty());
  EXPECT_THAT(why_refused(with_data(std::string(kMlp) + "\nnum_classes = 3", damaged, damaged)),
              HasSubstr("the data has targets up to 16000"));
  EXPECT_THAT(said(file(at::tensor({0, 3, 3, 0, 3}, at::kLong))), IsEmpty()) << "half of them";
}

TEST_F(JobTest, ValuesFrom1OnAreNoClasses) {
  const std::string data = hdf5("a.h5", {hdf5_array("input", at::rand({4, 2})),
                                         hdf5_array("target", at::tensor({3, 1, 2, 1}, at::kLong))});
  JobOptions options;
  options.run_dir = folder_.path("run");
  const std::string model = std::string(kMlp) + "\nloss = 'mse'";
  EXPECT_THAT(job_advice(make_job(recipe_of(with_data(model, data, data)), options)), IsEmpty());
}

TEST_F(JobTest, FoldersThatNumberClassesOtherwiseThanTrainingAreRefused) {
  const std::string image = TUTTI_SOURCE_DIR "/tests/golden/images/420_19x37.jpg";
  for (const char* folder : {"train/ant", "train/bee", "eval/bee"}) {
    std::filesystem::create_directories(folder_.path(folder));
    std::filesystem::copy(image, folder_.path(folder));
  }
  const auto of = [&](const std::string& name) {
    return "kind = 'image_folder'\nscale = 1\npath = '" + folder_.path(name) + "'\n";
  };
  EXPECT_THAT(why_refused(with_data(kMlp, of("train"), of("eval"))),
              AllOf(HasSubstr("data.eval.path = "), HasSubstr("class 0 is 'bee' here and 'ant' in training"),
                    HasSubstr("classes_from = \"" + folder_.path("train"))));
  const std::string alike = of("eval") + "classes_from = '" + folder_.path("train") + "'";
  EXPECT_EQ(why_refused(with_data(kMlp, of("train"), alike)), "it was taken");
}

TEST_F(JobTest, AModelThatMemoryCannotHoldIsRefused) {
  EXPECT_THAT(
      why_refused(with_data("kind = 'mlp'\nhidden = [1000000000, 1000000]", kPoints, kPoints)),
      AllOf(StartsWith("test.toml:2: [model]: its parameters and gradients need "), HasSubstr(" GB")));
  EXPECT_THAT(why_refused(with_data("kind = 'gpt'\nn_embd = 1000000000\nn_positions = 1000000000",
                                    "kind = 'synthetic'\ntargets = 'sequence'\nshape = [8]",
                                    "kind = 'synthetic'\ntargets = 'sequence'\nshape = [8]")),
              AllOf(StartsWith("test.toml:2: [model]: "), Not(HasSubstr("Exception raised"))));
}

TEST_F(JobTest, AModelThatOneRankCannotHoldIsTakenWhereItIsShared) {
  const auto memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto width = std::to_string(static_cast<int64_t>(std::sqrt(memory / 6)));  // a third too large
  const std::string recipe =
      with_data("kind = 'mlp'\nhidden = [" + width + ", " + width + "]", kPoints, kPoints) +
      "[sharding]\nstrategy = ";
  JobOptions options;
  options.run_dir = folder_.path("run");
  options.world = 2;
  EXPECT_EQ(why_refused(recipe + "'full'", options), "it was taken");
  EXPECT_THAT(why_refused(recipe + "'gradients'", options), HasSubstr("gradients need"));
}

std::string logging_to(const std::string& kind, const std::string& more = "") {
  return "[[loggers]]\nkind = '" + kind + "'\n" + more;
}

TEST_F(JobTest, ALoggerOrCallbackMayNotWriteWhereTheRunDoes) {
  const std::string recipe = with_data(kMlp, kPoints, kPoints);
  const auto named = [](const std::string& name) { return "filename = '" + name + "'\n"; };
  for (const std::string& name :
       {std::string("metrics.jsonl"), std::string("./metrics.jsonl"), std::string("log/../recipe.toml"),
        std::string("metrics.jsonl.new"), std::string("metrics.earlier.jsonl"), std::string("log/rank-0.log"),
        std::string("checkpoints/latest"), std::string("journal/x"), std::string("checkpoints"),
        std::string(".lock"), std::string("stop"), std::string("."), folder_.path("run/recipe.toml"),
        folder_.path("run")})
    EXPECT_THAT(why_refused(recipe + logging_to("jsonl", named(name))),
                AllOf(StartsWith("test.toml:18: loggers.0.filename = \"" + name + "\": expected "),
                      HasSubstr("the run's own")))
        << name;
  EXPECT_THAT(why_refused("run_name = 'metrics'\n" + recipe + logging_to("csv", named("{run_name}.jsonl"))),
              HasSubstr("metrics.jsonl is the run's own"));
  EXPECT_THAT(why_refused(recipe + logging_to("tensorboard", "log_dir = 'log'\n")),
              HasSubstr("loggers.0.log_dir = \"log\": expected another name"));
  EXPECT_THAT(
      why_refused(recipe + "[[callbacks]]\nkind = 'export_for_inference'\nsave_path = 'recipe.toml'\n"),
      StartsWith("test.toml:18: callbacks.0.save_path = \"recipe.toml\": expected another name"));
  EXPECT_THAT(why_refused(recipe + "[[callbacks]]\nkind = 'oom_observer'\nfolder = 'checkpoints'\n"),
              HasSubstr("callbacks.0.filename = "));
}

TEST_F(JobTest, NoTwoLoggersOrCallbacksMayWriteTheSameFile) {
  const std::string recipe = with_data(kMlp, kPoints, kPoints), csv = logging_to("csv");
  EXPECT_THAT(why_refused(recipe + csv + csv),
              AllOf(HasSubstr(": loggers.1.filename = \"metrics-rank{rank}.csv\": loggers.0.filename = "),
                    HasSubstr(" writes there too")));
  EXPECT_EQ(why_refused(recipe + csv + logging_to("csv", "filename = 'more.csv'\n")), "it was taken");
  EXPECT_THAT(why_refused(recipe + csv + logging_to("file", "filename = 'metrics-rank0.csv'\n")),
              HasSubstr("writes there too"));
  EXPECT_THAT(why_refused(recipe + csv + logging_to("file", "filename = 'metrics-rank0.csv/x'\n")),
              HasSubstr("writes there too"));
  EXPECT_THAT(why_refused(recipe + logging_to("tensorboard") + logging_to("tensorboard")),
              HasSubstr("loggers.0.log_dir = \"tensorboard\""));
  const std::string save = "[[callbacks]]\nkind = 'export_for_inference'\nsave_path = 'out/{batch}'\n";
  EXPECT_THAT(why_refused(recipe + save + save), HasSubstr("callbacks.0.save_path = "));
  EXPECT_EQ(why_refused(recipe + save + csv), "it was taken");
}

TEST_F(JobTest, ALoggersFileHasNoOtherPlaceholders) {
  const std::string recipe = with_data(kMlp, kPoints, kPoints);
  EXPECT_THAT(why_refused(recipe + logging_to("csv", "filename = 'y{epoch}.csv'\n")),
              StartsWith("test.toml:18: loggers.0.filename = \"y{epoch}.csv\": unknown placeholder {epoch}; "
                         "there are {run_name}, {rank}"));
  EXPECT_THAT(why_refused(recipe + logging_to("tensorboard", "log_dir = '{runname}'\n")),
              AllOf(StartsWith("test.toml:18: loggers.0.log_dir = \"{runname}\": "),
                    HasSubstr("did you mean {run_name}?")));
  EXPECT_EQ(why_refused(recipe + logging_to("csv", "filename = '{run_name}-{rank}.csv'\n")), "it was taken");
}

TEST_F(JobTest, ALogIsNoPipeAndNoInput) {
  const std::string recipe = with_data(kMlp, kPoints, kPoints);
  EXPECT_THAT(why_refused(recipe + logging_to("csv", "filename = '/dev/null'\n")),
              HasSubstr("loggers.0.filename = \"/dev/null\": expected a file; /dev/null is a "));
  const std::string labels = hdf5(
      "data.h5", {hdf5_array("input", at::ones({4, 12})), hdf5_array("target", at::arange(4, at::kLong))});
  EXPECT_THAT(why_refused(with_data(kMlp, labels, kPoints) +
                          logging_to("csv", "filename = '" + folder_.path("data.h5") + "'\n")),
              HasSubstr("data.train.path is read from there"));
  EXPECT_EQ(
      why_refused(recipe + "[checkpoint]\nsave_folder = '" + folder_.path("run") + "'\n" + logging_to("csv")),
      "it was taken");
}

TEST_F(JobTest, AFolderThatCannotBeMadeIsBlamedOnTheKeyThatNamesIt) {
  PosixDisk().open(folder_.path("file"), true)->close();
  JobOptions options;
  options.run_dir = folder_.path("file/run");
  const std::string recipe = with_data(kMlp, kPoints, kPoints);
  EXPECT_THAT(why_refused(recipe, options),
              AllOf(StartsWith("command line: --run-dir = "), HasSubstr("file/run\": cannot create: ")));
  options.makes_folders = false;
  EXPECT_EQ(why_refused(recipe, options), "it was taken");
  EXPECT_THAT(why_refused(recipe + "[checkpoint]\nsave_folder = '" + (folder_.path("file/of")) + "'\n"),
              HasSubstr("checkpoint.save_folder = "));
}

}  // namespace
}  // namespace tutti
