// Students of a checkpoint of another run.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>
#include <functional>

#include "commands/check.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/hdf5/hdf5.h"
#include "io/hdf5/hdf5_writer.h"
#include "models/losses.h"
#include "models/zoo/factory.h"
#include "runtime/regular_file.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kDigits = TUTTI_SOURCE_DIR "/examples/data/digits.h5";
constexpr double kRate = 0.1;

std::string recipe(const std::string& model, int steps, const std::string& more = "") {
  return "seed = 5\n[model]\n" + model + "[data.train]\nkind = 'hdf5'\npath = '" + kDigits +
         "'\ngroup = 'train'\nbatch_size = 24\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\nmax_duration = "
         "'" +
         std::to_string(steps) + "ba'\n" + more;
}
std::string sequential(const std::string& layers) {
  return "kind = 'sequential'\nlayers = [" + layers + "]\n";
}
std::string mlp(const std::string& hidden) { return "kind = 'mlp'\nhidden = " + hidden + "\n"; }

class Distilled : public testing::Test {
 protected:
  void train(const std::string& text, const std::string& name, int ranks = 1, const std::string& resume = "",
             bool quiet = true) const {
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = folder_.path(name);
    options.resume = resume;
    options.live = !quiet;
    options.quiet = quiet;
    train_in_one_process(recipe_of(text), options);
  }
  std::string by_teacher(const std::string& name, const std::string& more = "") const {
    return "[[algorithms]]\nkind = 'distillation'\nteacher = '" + folder_.path(name) + "'\n" + more;
  }
  std::map<std::string, at::Tensor> weights(const std::string& name) const {
    return newest_checkpoint(folder_.path(name)).tensors;
  }
  // A student of "teacher" that is trained at once, and one that is resumed, with `between` before that.
  void expect_same_bits_in_halves(const std::function<void()>& between) const {
    const std::string more = by_teacher("teacher");
    train(recipe(mlp("[8]"), 6, more), "whole");
    train(recipe(mlp("[8]"), 3, more), "halves");
    between();
    train(recipe(mlp("[8]"), 6, more), "halves", 1, "auto");
    EXPECT_EQ(inspect_digest(folder_.path("halves")), inspect_digest(folder_.path("whole")));
  }
  std::string refused(const std::string& text) const {
    return message_of<UserError>([&] { check_text(recipe_of(text), {}); });
  }

  Scratch folder_;
};

// relu(x W0 + b0) W1 + b1
at::Tensor scores_of(const std::vector<at::Tensor>& weights, const at::Tensor& images) {
  return at::linear(at::linear(images.flatten(1), weights[0], weights[1]).relu(), weights[2], weights[3]);
}

std::vector<at::Tensor> in_order(const std::map<std::string, at::Tensor>& tensors, Model& model) {
  std::vector<at::Tensor> weights;
  for (const auto& one : parameters(model)) weights.push_back(tensors.at("model/" + one.name));
  return weights;
}

std::shared_ptr<Model> model_of(const std::string& text) {
  const SampleSpec digits{.shapes = {{"input", {1, 8, 8}}, {"target", {}}}, .classes = 10};
  return make_model(recipe_of(text).at("model"), digits);
}

// (1 - w) cross entropy + w T^2 KL, in plain tensors, beside a run on two ranks in two parts.
TEST_F(Distilled, TrainsByHintonsFormula) {
  const std::string student = recipe(mlp("[8]"), 10, "grad_accum = 2\n"), teacher = recipe(mlp("[32]"), 40);
  train(teacher, "teacher");
  const at::Tensor images = Hdf5File(kDigits).read_range("train/input", 0, 240),
                   labels = Hdf5File(kDigits).read_range("train/target", 0, 240);
  const auto large = model_of(teacher), small = model_of(student);
  const std::vector<at::Tensor> wise = in_order(weights("teacher"), *large);
  materialise(*small, 5);
  std::vector<at::Tensor> mine;
  for (const auto& one : parameters(*small)) mine.push_back(one.parameter->tensor);
  for (int step = 0; step < 10; ++step) {
    const at::Tensor x = images.narrow(0, 24 * step, 24), y = labels.narrow(0, 24 * step, 24);
    const at::Tensor scores = scores_of(mine, x), p = at::softmax(scores_of(wise, x) / 3.0, 1);
    const at::Tensor divergence = (p * (p.log() - at::log_softmax(scores / 3.0, 1))).sum(1).mean() * 9.0;
    const at::Tensor own = -at::log_softmax(scores, 1).gather(1, y.unsqueeze(1)).mean();
    const auto gradients = torch::autograd::grad({own * 0.3 + divergence * 0.7}, mine);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i].sub_(gradients[i], kRate);
  }
  train(student + by_teacher("teacher", "temperature = 3.0\nweight = 0.7\n"), "student", 2);
  const auto found = weights("student");
  const auto trained = in_order(found, *small);
  for (std::size_t i = 0; i < mine.size(); ++i)
    EXPECT_LT((trained[i] - mine[i]).abs().max().item<double>(), 1e-5) << i;
  train(student, "alone", 2);
  EXPECT_EQ(found.size(), weights("alone").size()) << "a checkpoint has nothing of the teacher";
}

// As above for classes in the second dimension, where not all targets count, nor alike.
class DistilledPixels : public Distilled {
 protected:
  static constexpr int kSteps = 3, kSamples = 8;

  std::string recipe_with(const std::string& file, int steps, const std::string& more) const {
    std::string text = recipe(sequential("'Conv2d(1, 3, 1)'"), steps, more);
    replace(text, kDigits, folder_.path(file));
    return replace(text, "batch_size = 24", "batch_size = 8");
  }
  static std::string& replace(std::string& text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }
  // Of each class; the layer has a row for one.
  static at::Tensor scores_by(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& images) {
    return images * weight.view({1, 3, 1, 1}) + bias.view({1, 3, 1, 1});
  }
  void write(const std::string& file, const at::Tensor& target) const {
    PosixDisk disk;
    write_hdf5(disk, folder_.path(file),
               {hdf5_array("train/input", images_), hdf5_array("train/target", target)});
  }
  // The weights of the student: kernel and bias.
  std::vector<at::Tensor> student(const std::string& file, const std::string& more, int ranks) const {
    train(recipe_with(file, kSteps, more + by_teacher("teacher", "temperature = 3.0\nweight = 0.7\n")),
          "student", ranks);
    const auto found = weights("student");
    return {found.at("model/0.weight"), found.at("model/0.bias")};
  }
  std::vector<at::Tensor> by_formula(const std::vector<at::Tensor>& start, const at::Tensor& counted) const;

  at::Tensor images_ = at::linspace(-2, 3, kSamples * 9).mul(7).sin().mul(2).view({kSamples, 1, 3, 3});
  at::Tensor labels_ = at::arange(kSamples * 9, at::kLong).remainder(4).view({kSamples, 3, 3});  // 3: ignored
};

std::vector<at::Tensor> DistilledPixels::by_formula(const std::vector<at::Tensor>& start,
                                                    const at::Tensor& counted) const {
  const auto teacher = weights("teacher");
  const at::Tensor p =
      at::softmax(scores_by(teacher.at("model/0.weight"), teacher.at("model/0.bias"), images_) / 3.0, 1);
  std::vector<at::Tensor> mine;
  for (const at::Tensor& one : start) mine.push_back(one.clone().requires_grad_());
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor scores = scores_by(mine[0], mine[1], images_);
    const at::Tensor divergences = (p * (p.log() - at::log_softmax(scores / 3.0, 1))).sum(1) * 9.0;
    const at::Tensor own =
        -at::log_softmax(scores, 1).gather(1, labels_.remainder(3).unsqueeze(1)).squeeze(1);
    const at::Tensor loss = ((own * 0.3 + divergences * 0.7) * counted).sum() / counted.sum();
    const auto gradients = torch::autograd::grad({loss}, mine);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i].sub_(gradients[i], kRate);
  }
  return mine;
}

TEST_F(DistilledPixels, CountAsInTheModelsOwnLoss) {
  const at::Tensor is_counted = labels_.ne(3);
  write("indices.h5", labels_.masked_fill(is_counted.logical_not(), kIgnoredTarget));
  write("probabilities.h5",
        at::one_hot(labels_, 4).narrow(3, 0, 3).movedim(3, 1).contiguous().to(at::kFloat));
  train(recipe_with("indices.h5", 40, ""), "teacher");
  train(recipe_with("indices.h5", 1, "[scheduler]\nkind = 'constant'\nalpha = 0.0\n"), "start");
  const auto begin = weights("start");
  const std::vector<at::Tensor> start{begin.at("model/0.weight"), begin.at("model/0.bias")};
  const at::Tensor of_class = at::tensor({4.0F, 1.0F, 0.25F});
  const at::Tensor weighed = of_class.index_select(0, labels_.remainder(3).flatten()).view_as(labels_);
  const std::string weight = "[model.loss]\nkind = 'cross_entropy'\nweight = [4.0, 1.0, 0.25]\n";
  const auto expect = [&](const std::string& file, const std::string& more, const at::Tensor& counted) {
    const auto wanted = by_formula(start, counted);
    for (const int ranks : {1, 2}) {
      const auto found = student(file, "grad_accum = 2\n" + more, ranks);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_LT((found[i] - wanted[i]).abs().max().item<double>(), 1e-6) << file << more << ranks;
    }
  };
  expect("indices.h5", "", is_counted.to(at::kFloat));
  expect("indices.h5", weight, is_counted * weighed);
  expect("probabilities.h5", "", is_counted.to(at::kFloat));
  const std::string smoothed = weight + "[[algorithms]]\nkind = 'label_smoothing'\nsmoothing = 0.1\n";
  const auto whole = student("indices.h5", smoothed, 1),
             parts = student("indices.h5", "grad_accum = 2\n" + smoothed, 2);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_LT((whole[i] - parts[i]).abs().max().item<double>(), 1e-6) << i;
}

TEST_F(Distilled, ByATeacherWithoutDropout) {
  const std::string still = "[scheduler]\nkind = 'constant'\nalpha = 0.0\n";
  train(recipe(sequential("'Flatten()', 'Linear(64, 10)'"), 1, still), "plain");
  train(recipe(sequential("'Flatten()', 'Linear(64, 10)', 'Dropout(0.5)'"), 1, still), "dropping");
  train(recipe(mlp("[8]"), 2, by_teacher("plain")), "of plain");
  train(recipe(mlp("[8]"), 2, by_teacher("dropping")), "of dropping");
  EXPECT_EQ(inspect_digest(folder_.path("of dropping")), inspect_digest(folder_.path("of plain")));
}

TEST_F(Distilled, ResumesWithTheSameBits) {
  train(recipe(mlp("[32]"), 5), "teacher");
  expect_same_bits_in_halves([] {});
}

TEST_F(Distilled, KeepsItsTeacherThoughTheTeachersRunContinues) {
  train(recipe(mlp("[32]"), 5), "teacher");
  expect_same_bits_in_halves([this] { train(recipe(mlp("[32]"), 10), "teacher", 1, "auto"); });
  train(recipe(mlp("[8]"), 6, by_teacher("teacher")), "later");
  EXPECT_NE(inspect_digest(folder_.path("later")), inspect_digest(folder_.path("whole")));
  EXPECT_THAT(text_of_file(folder_.path("whole") + "/recipe.toml"), HasSubstr("/checkpoints/ep0-ba5\""));
}

TEST_F(Distilled, SaysWhereAResumedRunHasAnotherTeacher) {
  const std::string name = folder_.path("teacher");
  train(recipe(mlp("[32]"), 5), "teacher");
  train(recipe(mlp("[8]"), 3, by_teacher("teacher")), "student");
  const auto said_on_resuming = [&](int steps) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    train(recipe(mlp("[8]"), steps, by_teacher("teacher")), "student", 1, "auto", false);
    return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said_on_resuming(4), Not(HasSubstr("other weights")));
  std::filesystem::remove_all(name);
  train("seed = 6\n" + recipe(mlp("[32]"), 5).substr(9), "teacher");
  EXPECT_THAT(said_on_resuming(5), HasSubstr("algorithms.0.teacher has other weights than before"));
  EXPECT_THAT(said_on_resuming(6), Not(HasSubstr("other weights")));
}

TEST_F(Distilled, BySurgeryThatTheTeachersWeightsNeed) {
  const std::string layers = sequential("'Conv2d(1, 8, 3)', 'MaxPool2d(2)', 'Flatten()', 'Linear(72, 10)'");
  train(recipe(layers, 2, "[[algorithms]]\nkind = 'blurpool'\n"), "teacher");
  train(recipe(mlp("[8]"), 2, by_teacher("teacher/checkpoints/latest")), "student");
  train(recipe(mlp("[8]"), 2), "alone");
  EXPECT_NE(inspect_digest(folder_.path("student")), inspect_digest(folder_.path("alone")));
}

TEST_F(Distilled, ByTheAveragesThatTheTeachersEvaluationsUse) {
  const std::string ema = "[[algorithms]]\nkind = 'ema'\nhalf_life = '1000ba'\nupdate_interval = '1ba'\n";
  train(recipe(mlp("[32]"), 20), "last");
  train(recipe(mlp("[32]"), 20, ema), "averaged");
  train(recipe(mlp("[8]"), 2, by_teacher("last")), "of last");
  train(recipe(mlp("[8]"), 2, by_teacher("averaged")), "of averaged");
  EXPECT_NE(inspect_digest(folder_.path("of averaged")), inspect_digest(folder_.path("of last")));
}

TEST_F(Distilled, SaysWhatDoesNotFit) {
  train(recipe(mlp("[32]"), 1), "teacher");
  EXPECT_THAT(refused(recipe(mlp("[8]") + "num_classes = 12\n", 2, by_teacher("teacher"))),
              AllOf(HasSubstr("the teacher's outputs are [1, 10] for a sample, the model's [1, 12]"),
                    HasSubstr("test.toml:")));
  EXPECT_THAT(refused(recipe(mlp("[8]"), 2, by_teacher("nobody"))),
              AllOf(HasSubstr("teacher = "), HasSubstr("nobody")));
  EXPECT_THAT(refused(recipe(mlp("[8]") + "loss = 'mse'\n", 2, by_teacher("teacher"))),
              HasSubstr("no scores of classes"));
  std::string labels = recipe(mlp("[8]") + "loss = 'bce_with_logits'\n", 2, by_teacher("teacher"));
  labels.replace(labels.find(kDigits), kDigits.size(), TUTTI_SOURCE_DIR "/examples/data/targets.h5");
  labels.replace(labels.find("'train'"), 7, "'labels/train'");
  EXPECT_THAT(refused(labels), HasSubstr("may have several labels"));
}

// Its scores are no logarithms of one distribution over the classes.
TEST_F(Distilled, ByNoTeacherOfSeveralLabelsOrOfValues) {
  std::string labels = recipe(mlp("[8]") + "loss = 'bce_with_logits'\n", 1);
  labels.replace(labels.find(kDigits), kDigits.size(), TUTTI_SOURCE_DIR "/examples/data/targets.h5");
  labels.replace(labels.find("'train'"), 7, "'labels/train'");
  train(labels, "labels");
  train(recipe(mlp("[8]") + "loss = 'mse'\n", 1), "values");
  train(recipe(mlp("[8]") + "loss = 'bce_with_logits'\n", 1), "classes");
  EXPECT_THAT(refused(recipe(mlp("[8]"), 2, by_teacher("labels"))),
              AllOf(HasSubstr("test.toml:"), HasSubstr("it was trained on several labels a sample")));
  EXPECT_THAT(refused(recipe(mlp("[8]"), 2, by_teacher("values"))),
              AllOf(HasSubstr("test.toml:"), HasSubstr("its loss, mse, is of values")));
  EXPECT_NO_THROW(check_text(recipe_of(recipe(mlp("[8]"), 2, by_teacher("classes"))), {}));
}

}  // namespace
}  // namespace tutti
