#include "job/algorithms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/inspect.h"
#include "commands/loaded_model.h"
#include "commands/local_train.h"
#include "models/layers/attention.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Multiplies what the layer gives by a parameter.
class Multiplied final : public Layer {
 public:
  Multiplied(std::shared_ptr<Layer> inner, double factor)
      : factor_(add_parameter("factor", {}, constant_init(factor))),
        inner_(add_slot("inner", std::move(inner))) {}
  TensorTree forward(const TensorTree& input) override { return inner_(input).tensor() * factor_.tensor; }
  const char* kind() const override { return "Multiplied"; }

 private:
  Parameter& factor_;
  Slot& inner_;
};

// Wraps the first layer.
class Multiply final : public Algorithm {
 public:
  explicit Multiply(double factor, Event at = Event::kInit) : factor_(factor), at_(at) {}
  std::string name() const override { return "Multiply"; }
  Needs needs() const override { return {.required_on_load = true}; }
  bool match(Event event, const State&) const override { return event == at_; }
  void apply(Event event, State& state, Logger&) override {
    Slot& first = *state.model->slots().front();
    first.fill(std::make_shared<Multiplied>(first.share(), factor_));
    if (event == Event::kBatchEnd) follow_surgery(state, state.seed);
  }

 private:
  double factor_;
  Event at_;
};

class Named final : public Algorithm {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Needs needs() const override { return {.required_on_load = true}; }
  bool match(Event, const State&) const override { return false; }
  void apply(Event, State&, Logger&) override {}

 private:
  std::string name_;
};

// The recipe's gradient clipping by a norm of N is Multiply by N here, since catalogs know no other.
void use_multiply(Job& job) {
  job.make_algorithm = [](const Setting& section) {
    return std::make_shared<Multiply>(section.at("clipping_threshold").number());
  };
}

constexpr const char* kMultiply =
    "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = 1.5\n";

std::string recipe_text(const std::string& checkpoint, const std::string& algorithms, int steps) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nkind = 'synthetic'\nsamples = 96\n"
         "batch_size = 24\nshape = [6]\n[optimizer]\nkind = 'adamw'\nlr = 0.05\n[train]\nmax_duration = '" +
         std::to_string(steps) + "ba'\n[checkpoint]\n" + checkpoint + algorithms;
}

class AlgorithmsTest : public testing::Test {
 protected:
  struct Run {
    std::string checkpoint = "";
    std::string algorithms = "";
    int steps = 4;
    std::shared_ptr<Algorithm> of_program = nullptr;
    std::string resume = "";
    int ranks = 2;
  };

  void train(const std::string& name, const Run& run) {
    LocalRunOptions options;
    options.ranks = run.ranks;
    options.run_dir = path(name);
    options.resume = run.resume;
    options.quiet = true;
    options.prepare = [&run](Job& job) {
      use_multiply(job);
      if (run.of_program)
        job.listeners = [&run](int) { return Engine::Options{.algorithms = {run.of_program}}; };
    };
    train_in_one_process(recipe_of(recipe_text(run.checkpoint, run.algorithms, run.steps)), options);
  }
  // By a recipe as it is. `more`: of [checkpoint], and sections after it.
  void train_as_it_is(const std::string& name, const std::string& model, const std::string& data,
                      const std::string& more, int steps) {
    LocalRunOptions options;
    options.run_dir = path(name);
    options.quiet = true;
    train_in_one_process(recipe_of("seed = 5\n[model]\n" + model +
                                   "[data.train]\nkind = 'synthetic'\nsamples = 24\nbatch_size = 8\n" + data +
                                   "[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\nmax_duration = '" +
                                   std::to_string(steps) + "ba'\n[checkpoint]\n" + more),
                         options);
  }
  std::string refused(const Run& run) {
    return message_of<UserError>([&] { train("refused", run); });
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string load_path(const std::string& name) const { return "load_path = '" + path(name) + "'\n"; }
  WholeCheckpoint newest(const std::string& name) const { return newest_checkpoint(path(name)); }
  std::vector<std::string> required(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& one : RunState::from_json(newest(name).state).required_algorithms)
      names.push_back(one.name);
    return names;
  }

  Scratch folder_;
};

TEST_F(AlgorithmsTest, SurgeryThatACheckpointNeedsIsDoneAgain) {
  train("a", {.algorithms = kMultiply});
  EXPECT_THAT(required("a"), ElementsAre("Multiply"));
  EXPECT_NE(newest("a").tensors.at("model/0.factor").item<float>(), 1.5);
  train("with", {.checkpoint = load_path("a"), .algorithms = kMultiply, .steps = 6});
  train("without", {.checkpoint = load_path("a"), .steps = 6});
  EXPECT_EQ(inspect_digest(path("without")), inspect_digest(path("with")));
  EXPECT_THAT(required("without"), ElementsAre("Multiply"));
}

TEST_F(AlgorithmsTest, AnotherRunResumesFromSurgery) {
  train("a", {.algorithms = kMultiply, .steps = 2});
  train("b", {.checkpoint = load_path("a"), .steps = 4});
  train("c", {.checkpoint = load_path("b"), .steps = 6});
  train("whole", {.algorithms = kMultiply, .steps = 6});
  EXPECT_EQ(inspect_digest(path("c")), inspect_digest(path("whole")));
}

TEST_F(AlgorithmsTest, SurgeryIsRedoneForOwnCheckpointsAndForWeightsAlone) {
  train("a", {.algorithms = kMultiply, .steps = 2});
  train("weights", {.checkpoint = load_path("a") + "load_weights_only = true\n", .steps = 1});
  EXPECT_EQ(newest("weights").tensors.count("model/0.inner.weight"), 1U);
  train("a", {.steps = 6, .resume = "auto"});
  train("whole", {.algorithms = kMultiply, .steps = 6});
  EXPECT_EQ(inspect_digest(path("a")), inspect_digest(path("whole")));
}

// An attention of a program's own: as models/layers/attention.h asks.
class Attention final : public SelfAttention {
 public:
  TensorTree forward(const TensorTree& input) override {
    const at::Tensor& x = input.tensor();
    at::Tensor scores = at::matmul(x, x.transpose(1, 2)).unsqueeze(1);
    const at::Tensor bias = position_bias(x.size(1), x.device());
    biased = bias.defined();
    if (biased) scores = scores + bias;
    return at::matmul(scores.softmax(-1).squeeze(1), x);
  }
  const char* kind() const override { return "Attention"; }
  int64_t heads() const override { return 1; }
  bool causal() const override { return false; }

  bool biased = false;
};

class Reader final : public Model {
 public:
  Reader()
      : tokens_(add_slot("tokens", std::make_shared<Embedding>(256, 4))),
        places_(add_slot("places", std::make_shared<LearnedPositions>(8, 4))),
        attention_(add_slot("attention", std::make_shared<Attention>())),
        scores_(add_slot("scores", std::make_shared<Linear>(4, 256))) {}
  TensorTree forward(const Batch& batch) override {
    const at::Tensor& tokens = batch["input"];
    return scores_(attention_(tokens_(tokens) + places_(at::arange(tokens.size(1)))));
  }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override {
    return at::cross_entropy_loss(outputs.tensor().flatten(0, 1), batch["target"].flatten());
  }
  const char* kind() const override { return "Reader"; }
  const Attention& attention() const { return dynamic_cast<const Attention&>(attention_.layer()); }

 private:
  Slot& tokens_;
  Slot& places_;
  Slot& attention_;
  Slot& scores_;
};

TEST_F(AlgorithmsTest, AlibiBiasesAnAttentionOfAProgram) {
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = path("own");
  options.quiet = true;
  const auto model = std::make_shared<Reader>();
  options.prepare = [&](Job& job) {
    job.make_model = [&](const Setting&, const SampleSpec&) { return model; };
  };
  train_in_one_process(
      recipe_of(
          "seed = 5\n[model]\nkind = 'gpt'\n[data.train]\nkind = 'synthetic'\nsamples = 24\nbatch_size = "
          "8\nshape = [16]\ntargets = 'sequence'\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\n"
          "max_duration = '3ba'\n[[algorithms]]\nkind = 'alibi'\nmax_sequence_length = 16\n"),
      options);
  EXPECT_TRUE(model->attention().biased);
  EXPECT_TRUE(newest("own").tensors.at("model/places.weight").equal(at::zeros({16, 4})));
}

TEST_F(AlgorithmsTest, AlibiIsDoneAgain) {
  const auto train_text = [this](const std::string& name, const std::string& more, int steps) {
    train_as_it_is(name, "kind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 8\nn_positions = 8\n",
                   "shape = [8]\ntargets = 'sequence'\n", more, steps);
  };
  const std::string alibi = "[[algorithms]]\nkind = 'alibi'\nmax_sequence_length = 16\n";
  train_text("a", alibi, 2);
  train_text("with", load_path("a") + alibi, 5);
  train_text("without", load_path("a"), 5);
  EXPECT_EQ(inspect_digest(path("without")), inspect_digest(path("with")));
  EXPECT_THAT(required("without"), ElementsAre("Alibi"));
  train_text("longer", load_path("a") + "[[algorithms]]\nkind = 'alibi'\nmax_sequence_length = 32\n", 5);
  EXPECT_EQ(newest("longer").tensors.at("model/transformer.wpe.weight").size(0), 32);
}

TEST_F(AlgorithmsTest, FactorizeIsDoneAgain) {
  const auto train_net = [this](const std::string& name, const std::string& more, int steps) {
    train_as_it_is(name, "kind = 'mlp'\nhidden = [6, 6]\n", "shape = [6]\n", more, steps);
  };
  const std::string factorize = "[[algorithms]]\nkind = 'factorize'\nmin_features = 6\nlatent_features = 2\n";
  train_net("a", factorize, 2);
  train_net("with", load_path("a") + factorize, 5);
  train_net("without", load_path("a"), 5);
  EXPECT_EQ(inspect_digest(path("without")), inspect_digest(path("with")));
  EXPECT_THAT(required("without"), ElementsAre("Factorize"));
  int factors = 0;
  for (const auto& [name, tensor] : newest("a").tensors)
    factors += name.starts_with("model/") && name.ends_with(".module0.weight");
  EXPECT_EQ(factors, 3);
}

// The n-th of a name is the n-th of the recipe.
TEST_F(AlgorithmsTest, TwoOfAKindAreDoneAgain) {
  train("a", {.algorithms = std::string(kMultiply) + kMultiply});
  EXPECT_THAT(required("a"), ElementsAre("Multiply", "Multiply"));
  train("with", {.checkpoint = load_path("a"), .algorithms = std::string(kMultiply) + kMultiply, .steps = 6});
  train("one", {.checkpoint = load_path("a"), .algorithms = kMultiply, .steps = 6});
  train("none", {.checkpoint = load_path("a"), .steps = 6});
  EXPECT_EQ(inspect_digest(path("one")), inspect_digest(path("with")));
  EXPECT_EQ(inspect_digest(path("none")), inspect_digest(path("with")));
}

TEST_F(AlgorithmsTest, OtherSettingsThanTheCheckpointsAreWarnedOf) {
  train("a", {.algorithms = kMultiply});
  const std::string other =
      "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = 2.5\n";
  for (const auto& [algorithms, warnings] : {std::pair{std::string(kMultiply), 0}, {other, 1}}) {
    Job job = single_process_job(recipe_of(recipe_text("", algorithms, 4)), 1);
    use_multiply(job);
    Algorithms made = make_algorithms(job);
    std::vector<std::string> said;
    add_required_algorithms(made, job, {path("a"), {{}, newest("a").state}}, {},
                            [&](const std::string& one) { said.push_back(one); });
    EXPECT_EQ(std::ssize(said), warnings);
    if (warnings > 0) {
      EXPECT_THAT(said.at(0), HasSubstr("trained with other settings of Multiply"));
    }
  }
}

TEST_F(AlgorithmsTest, ExcludedSurgeryIsNotDone) {
  train("a", {.algorithms = kMultiply});
  const std::string excluded = load_path("a") + "load_exclude_algorithms = ['Multiply']\n";
  EXPECT_THAT(refused({.checkpoint = excluded, .steps = 6}),
              HasSubstr("there is no 'model/0.weight', which the recipe needs"));
  train("b", {.checkpoint = excluded + "load_weights_only = true\nload_strict_model_weights = false\n"});
  EXPECT_EQ(newest("b").tensors.count("model/0.weight"), 1U);
}

TEST_F(AlgorithmsTest, SurgeryOfAProgramIsNamed) {
  train("a", {.of_program = std::make_shared<Multiply>(1.5), .ranks = 1});
  EXPECT_THAT(required("a"), ElementsAre("Multiply"));
  EXPECT_THAT(
      refused({.checkpoint = load_path("a"), .steps = 6}),
      AllOf(HasSubstr("checkpoint.load_path = "), HasSubstr("the weights need the algorithm Multiply, which "
                                                            "cannot be applied: the program of that run")));
}

TEST_F(AlgorithmsTest, SurgeryOfAPluginIsNamed) {
  const Job job = single_process_job(recipe_of(recipe_text("", "", 4)), 1);
  RunState saved;
  saved.required_algorithms = {{"Lora", "[[algorithms]]\nkind = 'plugin'\nname = 'lora'\n"}};
  Algorithms algorithms;
  EXPECT_EQ(
      message_of<UserError>([&] {
        add_required_algorithms(algorithms, job, {"runs/a", {{}, saved.to_json()}});
      }),
      "runs/a: the weights need the algorithm Lora, which cannot be applied: it is of a plugin that the "
      "recipe does not name; add [plugins] with its library");
}

TEST_F(AlgorithmsTest, AProgramMayServeARecipeAsItIsWritten) {
  train("a", {.steps = 2});
  const Job job = single_process_job(parse_recipe(recipe_text("", "", 2), "test.toml"), 1);
  LoadedModel model(job, path("a"));
  model.load();
  EXPECT_TRUE(model.state.views[0].tensor.equal(newest("a").tensors.at("model/0.weight")));
}

// Options are a plugin's; paths among them have been resolved, and may be elsewhere now.
TEST_F(AlgorithmsTest, OfAModelsOptionsOnlyPathsMayDiffer) {
  const auto train_with = [this](const auto& width, const std::string& file, const std::string& resume) {
    LocalRunOptions options;
    options.run_dir = path("a");
    options.resume = resume;
    options.quiet = true;
    options.prepare = [&](Job& job) {
      const std::string of = "model.options.";
      Setting given(file, of + "file", {});
      given.written = "net.pt";
      Setting::Table members{{"width", Setting(width, of + "width", {})}, {"file", given}};
      job.recipe.find("model")->table().emplace_back("options", Setting(members, "model.options", {}));
      job.recipe_text = write_recipe(job.recipe);
    };
    train_in_one_process(recipe_of(recipe_text("", "", 2)), options);
  };
  train_with(int64_t{24}, "/old/net.pt", "");
  train_with(24.0, "/new/net.pt", "auto");
  EXPECT_THAT(message_of<UserError>([&] { train_with(int64_t{25}, "/old/net.pt", "auto"); }),
              HasSubstr("it was trained with model.options.width = 24, which is not so in the recipe"));
}

TEST_F(AlgorithmsTest, ModelsOfOtherCommandsHaveIt) {
  train("a", {.algorithms = kMultiply});
  Job job = single_process_job(recipe_of(recipe_text("", "", 4)), 1);
  use_multiply(job);
  LoadedModel model(job, path("a"));
  EXPECT_THAT(model.load(), HasSubstr("weights: " + path("a")));
  EXPECT_EQ(model.state.views[0].name, "0.factor");
  EXPECT_TRUE(model.state.views[0].tensor.equal(newest("a").tensors.at("model/0.factor")));
}

TEST_F(AlgorithmsTest, AtAfterLoadSurgeryHasTheBitsOfInit) {
  for (const int ranks : {1, 2}) {
    const std::string early = "early" + std::to_string(ranks), late = "late" + std::to_string(ranks);
    train(early, {.of_program = std::make_shared<Multiply>(1.5), .ranks = ranks});
    train(late, {.of_program = std::make_shared<Multiply>(1.5, Event::kAfterLoad), .ranks = ranks});
    EXPECT_EQ(inspect_digest(path(late)), inspect_digest(path(early)));
  }
}

TEST_F(AlgorithmsTest, NewParametersWithinTheTrainingAreRefused) {
  EXPECT_THAT(refused({.of_program = std::make_shared<Multiply>(1.5, Event::kBatchEnd), .ranks = 1}),
              HasSubstr("step 2: the parameters changed after FIT_START"));
}

TEST_F(AlgorithmsTest, StandWhereTheyStood) {
  Job job = single_process_job(recipe_of(recipe_text("", "", 4)), 1);
  job.make_algorithm = [](const Setting& section) {
    return std::make_shared<Named>(
        "clip" + std::to_string(static_cast<int>(section.at("clipping_threshold").number())));
  };
  const auto settings = [](int threshold) {
    return "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = " +
           std::to_string(threshold) + "\n";
  };
  RunState saved;
  saved.required_algorithms = {{"clip1", settings(1)},    {"own", ""},   {"clip2", settings(2)},
                               {"left out", settings(9)}, {"other", ""}, {"clip3", settings(3)}};
  Algorithms algorithms{std::make_shared<Named>("other"), std::make_shared<Named>("own")};
  std::vector<std::string> warnings;
  LoadOptions load;
  load.without_algorithms = {"left out"};
  const auto required =
      add_required_algorithms(algorithms, job, {"folder", {{}, saved.to_json()}}, load,
                              [&](const std::string& warning) { warnings.push_back(warning); });
  std::vector<std::string> names;
  for (const auto& one : algorithms) names.push_back(one->name());
  EXPECT_THAT(names, ElementsAre("clip2", "other", "clip1", "own", "clip3"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("folder: it was trained with clip1, which is not in the rec"),
                                    HasSubstr("clip2"), HasSubstr("clip3")));
  ASSERT_EQ(required.size(), 5U);
  EXPECT_EQ(required[0], saved.required_algorithms[2]);
  EXPECT_EQ(required[1], (RequiredAlgorithm{"other", ""}));
}

}  // namespace
}  // namespace tutti
