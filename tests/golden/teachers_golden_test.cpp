// Teachers that no run has trained give what PyTorch gives in evaluation, and stay as they are.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "algorithms/loop/teacher.h"
#include "commands/check.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "data/readers/synthetic_dataset.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/regular_file.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/golden_file.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The case of a program that PyTorch computed.
std::unique_ptr<GoldenCase> program_case(const std::string& file, const std::string& title) {
  for (const std::string& name : golden_cases(own_path(file)))
    if (auto found = std::make_unique<GoldenCase>(own_path(file), name); found->text("title") == title)
      return found;
  throw std::logic_error("no case " + title);
}

struct Taught {
  at::Tensor input, output;  // in evaluation
};
Taught taught_by_program(const std::string& file, const std::string& title) {
  const auto golden = program_case(file, title);
  return {golden->tensor("in/0"), golden->tensor("out/evaluation")};
}
Taught taught_by_weights(const std::string& model) {
  const auto expected = read_weights(own_path("weights/expected.safetensors"));
  return {expected.at(model + ".input"), expected.at(model + ".output")};
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }
std::string program(const std::string& name) { return quoted(own_path("exported/" + name + ".pt2")); }
std::string weights(const std::string& name) { return quoted(own_path("weights/" + name)); }

// The value of `teacher` in a recipe.
Setting teacher_of(const std::string& toml) {
  const std::string recipe =
      "[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nbatch_size = 2\n[optimizer]\nkind = 'sgd'\n"
      "lr = 0.1\n[train]\nmax_duration = '1ba'\n[[algorithms]]\nkind = 'distillation'\nteacher = " +
      toml;
  return recipe_of(recipe).at("algorithms").array()[0].at("teacher");
}

void expect_taught(const std::string& toml, const Taught& wanted, const char* array = "input",
                   const char* labels = "target") {
  const bool is_token_by_token = wanted.output.dim() == 3;
  const at::Tensor target = is_token_by_token ? wanted.input : at::zeros({wanted.input.size(0)}, at::kLong);
  const Batch batch = TensorTree::Children{{array, wanted.input}, {labels, target}};
  const TensorDataset data(batch);
  State run;
  run.dataset = &data;
  Teacher teacher(teacher_of(toml), run);
  EXPECT_EQ(teacher.try_forward(batch.narrow(0, 1)).tensor().sizes()[1], wanted.output.size(1)) << toml;
  std::string digest;
  teacher.load(run, digest);
  const double size = wanted.output.abs().max().item<double>();
  for (int pass = 0; pass < 3; ++pass) {
    const at::Tensor found = teacher.forward(batch).tensor();
    EXPECT_FALSE(found.requires_grad());
    ASSERT_EQ(found.sizes(), wanted.output.sizes()) << toml;
    EXPECT_LE((found - wanted.output).abs().max().item<double>(), 1e-5 * size) << toml << " pass " << pass;
  }
}

TEST(GoldenTeachers, AreProgramsInEvaluationModeThoughExportedInTraining) {
  const Taught convnet = taught_by_program("exported.h5", "convnet"),
               traced = taught_by_program("scripts.h5", "traced");
  expect_taught(program("convnet"), convnet);
  expect_taught("{ kind = 'exported', path = " + program("convnet") + ", prediction = 'logits' }", convnet);
  expect_taught(quoted(own_path("scripts/traced.pt")), traced);
  const Scratch folder;
  for (const auto& [file, wanted] :
       {std::pair("exported/convnet.pt2", convnet), {"scripts/traced.pt", traced}}) {
    const std::string renamed = folder.path("a program");
    std::filesystem::copy_file(own_path(file), renamed, std::filesystem::copy_options::overwrite_existing);
    expect_taught(quoted(renamed), wanted);
  }
}

TEST(GoldenTeachers, AreModelsOfTheZooWithWeights) {
  expect_taught("{ kind = 'resnet', depth = 18, width = 2, num_classes = 5, weights = " +
                    weights("resnet_ddp.pt") + " }",
                taught_by_weights("resnet"));
}

TEST(GoldenTeachers, AreFoldersOfHuggingFace) {
  expect_taught(weights("gpt2"), taught_by_weights("gpt2"));
  expect_taught("{ kind = 'hf', path = " + weights("gpt2") + " }", taught_by_weights("gpt2"));
  expect_taught(weights("bert_classification"), taught_by_weights("bert_classification"), "input_ids",
                "labels");
}

// A student may miss a head, which it learns; a teacher may not.
TEST(GoldenTeachers, LackNothingThatTheyHaveLearned) {
  const Taught wanted = taught_by_weights("resnet");
  const TensorDataset data(Batch(TensorTree::Children{
      {"input", wanted.input}, {"target", at::zeros({wanted.input.size(0)}, at::kLong)}}));
  State run;
  run.dataset = &data;
  const auto refused = [&](const std::string& more) {
    Teacher teacher(teacher_of("{ kind = 'resnet', width = 2, num_classes = 5, weights = " +
                               weights("resnet_ddp.pt") + ", " + more + " }"),
                    run);
    return message_of<UserError>([&, digest = std::string()]() mutable { teacher.load(run, digest); });
  };
  const std::string rest = ", which a teacher must have; ";
  EXPECT_THAT(refused("depth = 18, weights_ignore = ['fc.*']"),
              AllOf(HasSubstr("resnet_ddp.pt"), HasSubstr("'fc.weight', 'fc.bias'" + rest)));
  EXPECT_THAT(refused("depth = 34, weights_strict = false"),
              AllOf(HasSubstr("'layer1.2.conv1.weight', "), HasSubstr(rest)));
}

// A student of a program with batch norms: (1 - w) cross entropy + w T^2 KL, in plain tensors, of what
// PyTorch's model gives in evaluation.
class TaughtByProgram : public testing::Test {
 protected:
  static constexpr int kSteps = 6;
  static constexpr double kRate = 0.05;

  TaughtByProgram() {
    PosixDisk disk;
    write_hdf5(disk, folder_.path("data.h5"),
               {hdf5_array("train/input", golden_.input), hdf5_array("train/target", labels_)});
  }
  std::string recipe(int steps, const std::string& more) const {
    return "seed = 5\n[model]\nkind = 'sequential'\nlayers = ['Flatten()', 'Linear(108, 5)']\n"
           "[data.train]\nkind = 'hdf5'\npath = '" +
           folder_.path("data.h5") +
           "'\ngroup = 'train'\nbatch_size = 4\n[optimizer]\nkind = 'sgd'\nlr = 0.05\n[train]\n"
           "max_duration = '" +
           std::to_string(steps) + "ba'\n" + more;
  }
  std::string taught(const std::string& teacher) const {
    return "[[algorithms]]\nkind = 'distillation'\nteacher = " + teacher +
           "\ntemperature = 3.0\nweight = 0.7\n";
  }
  // Weight and bias after the steps.
  std::vector<at::Tensor> trained(const std::string& name, int steps, const std::string& more, int ranks = 1,
                                  const std::string& resume = "") const {
    train_in_one_process(recipe_of(recipe(steps, more)),
                         {.ranks = ranks, .run_dir = folder_.path(name), .resume = resume, .quiet = true});
    const auto saved = newest_checkpoint(folder_.path(name)).tensors;
    return {saved.at("model/1.weight"), saved.at("model/1.bias")};
  }
  std::vector<at::Tensor> by_formula() const;
  std::string refused(const std::string& teacher) const {
    return message_of<UserError>([&] { check_text(recipe_of(recipe(1, taught(teacher))), {}); });
  }

  Scratch folder_;
  const Taught golden_ = taught_by_program("exported.h5", "convnet");
  const at::Tensor labels_ = at::tensor({3, 0, 4, 1}, at::kLong);
};

std::vector<at::Tensor> TaughtByProgram::by_formula() const {
  std::vector<at::Tensor> mine = trained("start", 1, "[scheduler]\nkind = 'constant'\nalpha = 0.0\n");
  for (at::Tensor& one : mine) one.set_requires_grad(true);
  const at::Tensor images = golden_.input.flatten(1), p = at::softmax(golden_.output / 3.0, 1);
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor scores = at::linear(images, mine[0], mine[1]);
    const at::Tensor divergence = (p * (p.log() - at::log_softmax(scores / 3.0, 1))).sum(1).mean() * 9.0;
    const at::Tensor own = -at::log_softmax(scores, 1).gather(1, labels_.unsqueeze(1)).mean();
    const auto gradients = torch::autograd::grad({own * 0.3 + divergence * 0.7}, mine);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i].sub_(gradients[i], kRate);
  }
  return mine;
}

TEST_F(TaughtByProgram, TrainAsInPyTorchOnAnyRanksAndMicrobatches) {
  const auto wanted = by_formula();
  const std::string full = "[sharding]\nstrategy = 'full'\n", parts = "grad_accum = 2\n";
  for (const auto& [more, ranks] : {std::pair(std::string(), 1), {parts, 1}, {parts, 2}, {full, 2}}) {
    const auto found = trained("student", kSteps, more + taught(program("convnet")), ranks);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_LT((found[i] - wanted[i]).abs().max().item<double>(), 1e-6) << more << ranks;
    std::filesystem::remove_all(folder_.path("student"));
  }
}

TEST_F(TaughtByProgram, ResumeWithTheSameBits) {
  for (const std::string& teacher :
       {program("convnet"), "{ kind = 'exported', path = " + program("convnet") + " }"}) {
    trained("whole", 6, taught(teacher));
    trained("halves", 3, taught(teacher));
    trained("halves", 6, taught(teacher), 1, "auto");
    EXPECT_EQ(inspect_digest(folder_.path("halves")), inspect_digest(folder_.path("whole")));
    for (const char* name : {"whole", "halves"}) std::filesystem::remove_all(folder_.path(name));
  }
}

TEST_F(TaughtByProgram, SayWhatIsNoTeacher) {
  const auto is_refused = [&](const std::string& teacher, const std::string& found) {
    EXPECT_THAT(refused(teacher), AllOf(HasSubstr("test.toml:"), HasSubstr("teacher"), HasSubstr(found)));
  };
  is_refused(quoted(folder_.path("nothing")), "there is no such file or folder");
  is_refused(quoted(folder_.path("")), "this folder has no checkpoint and no config.json");
  is_refused(quoted(own_path("time.json")), "this file is none of them");
  is_refused(weights("resnet.pth"), "there are weights alone");
  is_refused("{ kind = 'mlp' }", "weights is missing: a teacher has learned already");
  is_refused("{ kind = 'program' }", "cannot be a teacher");
  is_refused("{ kind = 'resnt', weights = 'x.pt' }", "did you mean resnet");
  is_refused("{ kind = 'mlp', weights = 'nowhere.pt' }", "nowhere.pt");
  is_refused(program("modes"), "its input");
  is_refused(weights("gpt2"), "int64 tokens");
  is_refused("{ kind = 'mlp', loss = 'bce_with_logits', weights = " + weights("resnet.pth") + " }",
             "its loss, bce_with_logits, is of several labels");
  is_refused("{ kind = 'mlp', loss = { kind = 'mse' }, weights = " + weights("resnet.pth") + " }",
             "its loss, mse, is of values");
  is_refused("{ kind = 'mlp', num_classes = 7, weights = " + weights("resnet.pth") + " }",
             "the teacher's outputs are [1, 7] for a sample, the model's [1, 5]");
}

}  // namespace
}  // namespace tutti
