#include "actors/compute/passes.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

constexpr const char* kMicrobatchRecipe = R"(
seed = 3
[model]
kind = "resnet_cifar"
width = 4
[data.train]
kind = "synthetic"
batch_size = 8
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "1ba"
)";

const SampleSpec kSpec{{{"input", {3, 8, 8}}, {"target", {}}}, 10};

Batch random_batch(int64_t samples) {
  return TensorTree::Children{{"input", at::randn({samples, 3, 8, 8})},
                              {"target", at::randint(10, {samples})}};
}

// A model to train, to which nothing listens.
struct Training {
  State state;
  Logger logger;
  Engine engine{state, logger, {}};
  Exchange exchange{state, /*scaled=*/false};

  explicit Training(const std::string& recipe = kMicrobatchRecipe, const SampleSpec& spec = kSpec) {
    build(state, recipe_of(recipe), spec, 3);
    state.seed = 7;
  }
};

// Of a pass, after the exchanges that end it.
struct Seen {
  Verdict verdict;
  at::Tensor statistics;
};

Seen run(Training& training, Passes& passes, const Batch& batch, int64_t first_sample = 0) {
  passes.begin_attempt(batch, {{.first = first_sample, .samples = batch.samples()}});
  Pass& pass = passes.run();
  training.exchange.facts(pass);
  training.exchange.verdict(pass);
  return {pass.verdict, pass.statistics};
}

Seen run(Training& training, const Batch& batch, int64_t count) {
  Passes passes(training.state, training.engine, training.exchange, {.count = count});
  return run(training, passes, batch);
}

TEST(PassesTest, PartsThatDoNotDivideAreTorchSplits) {
  Training training;
  std::vector<int64_t> sizes;
  Passes passes(training.state, training.engine, training.exchange, {.count = 4},
                [&](TraceKind kind, int64_t) {
                  if (kind == TraceKind::kBackward) sizes.push_back(training.state.batch.samples());
                });
  const auto result = run(training, passes, random_batch(7));
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(result.verdict.loss_weight, 7);
}

// Makes two samples of each, as what cuts sequences does.
class Doubles final : public Algorithm {
 public:
  std::string name() const override { return "Doubles"; }
  bool match(Event event, const State&) const override { return event == Event::kAfterDataloader; }
  void apply(Event, State& state, Logger&) override {
    state.set_batch(state.batch.map([](const at::Tensor& rows) { return at::cat({rows, rows}); }));
    EXPECT_EQ(std::exchange(state.kept_samples, 0.5), 1.0) << "of another attempt";
  }
};

TEST(PassesTest, PlacesFollowTheNumberOfSamples) {
  Training training;
  Engine engine(training.state, training.logger, {.algorithms = {std::make_shared<Doubles>()}});
  std::vector<int64_t> places;
  Passes passes(training.state, engine, training.exchange, {.count = 2}, [&](TraceKind kind, int64_t) {
    if (kind == TraceKind::kBackward) places.push_back(training.state.first_sample);
  });
  for (int attempt = 0; attempt < 2; ++attempt) {
    places.clear();
    run(training, passes, random_batch(3), 5);
    EXPECT_EQ(places, (std::vector<int64_t>{10, 13}));
  }
}

constexpr const char* kGptRecipe =
    "seed = 3\n[model]\nkind = 'gpt'\nvocab_size = 8\nn_positions = 4\nn_embd = 8\nn_layer = "
    "1\nn_head = 1\n[data.train]\nkind = 'synthetic'\nbatch_size = 2\n[optimizer]\nkind = "
    "'sgd'\n[train]\nmax_duration = '1ba'\n";
const SampleSpec kTokenSpec{
    {{"input", {4}}, {"target", {4}}}, 0, {{"input", at::kLong}, {"target", at::kLong}}};

TEST(PassesTest, SamplesThatEventsAddedAreNotLeftOut) {
  Training training;
  Passes passes(training.state, training.engine, training.exchange, {.count = 4, .size = 2});
  EXPECT_EQ(run(training, passes, random_batch(7)).verdict.loss_weight, 7);
  EXPECT_EQ(training.state.device_train_microbatch_size, 2);
  EXPECT_EQ(run(training, passes, random_batch(11)).verdict.loss_weight, 11);
  EXPECT_EQ(training.state.device_train_microbatch_size, 3);
}

// A mean of the microbatches' means would give the tokens of a short one more weight.
TEST(PassesTest, EachTokenThatCountsWeighsTheSame) {
  Batch batch = TensorTree::Children{{"input", at::randint(8, {5, 4})}, {"target", at::randint(8, {5, 4})}};
  for (int row = 0; row < 4; ++row) batch["target"].select(0, row).narrow(0, 0, row).fill_(-100);
  Training whole(kGptRecipe, kTokenSpec), parts(kGptRecipe, kTokenSpec);
  const auto once = run(whole, batch, 1), thrice = run(parts, batch, 3);
  EXPECT_EQ(once.verdict.loss_weight, 14);
  EXPECT_EQ(thrice.verdict.loss_weight, 14);
  EXPECT_NEAR(once.verdict.loss_sum, thrice.verdict.loss_sum, 1e-4);
  for (std::size_t p = 0; p < whole.state.views.size(); ++p)
    EXPECT_TRUE(
        at::allclose(whole.state.views[p].tensor.grad(), parts.state.views[p].tensor.grad(), 1e-4, 1e-5))
        << whole.state.views[p].name;
}

TEST(PassesTest, EachSampleWhoseTargetCountsWeighsTheSame) {
  Batch batch = random_batch(7);
  for (const int64_t row : {0, 1, 4}) batch["target"][row] = -100;
  Training whole, parts;
  const auto once = run(whole, batch, 1), thrice = run(parts, batch, 4);
  EXPECT_EQ(once.verdict.loss_weight, 4);
  EXPECT_EQ(thrice.verdict.loss_weight, 4) << "and the first microbatch is not a number";
  EXPECT_EQ(thrice.verdict.non_finite, 0);
}

// Its mean loss would be 0 / 0.
TEST(PassesTest, AMicrobatchOfIgnoredTargetsCountsForNothing) {
  Training training(kGptRecipe, kTokenSpec);
  Batch batch = TensorTree::Children{{"input", at::randint(8, {2, 4})}, {"target", at::randint(8, {2, 4})}};
  batch["target"].select(0, 1).fill_(-100);
  const auto result = run(training, batch, 2);
  EXPECT_EQ(result.verdict.non_finite, 0);
  EXPECT_EQ(result.verdict.loss_weight, 4);
  EXPECT_DOUBLE_EQ(result.verdict.loss_sum, run(training, batch.narrow(0, 1), 1).verdict.loss_sum);
}

TEST(PassesTest, ForwardLeavesRunningStatisticsAlone) {
  Training training;
  std::vector<at::Tensor> before;
  for (const auto& one : training.state.buffers) before.push_back(one.buffer->tensor.clone());
  run(training, random_batch(8), 2);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(at::equal(training.state.buffers[i].buffer->tensor, before[i]))
        << training.state.buffers[i].name;
}

int64_t tracked_batches(const Training& training) {
  for (const auto& one : training.state.buffers)
    if (one.name == "bn1.num_batches_tracked") return one.buffer->tensor.item<int64_t>();
  return -1;
}

TEST(PassesTest, StatisticsAreTakenInOnceAMicrobatchAndRank) {
  Training training;
  Passes passes(training.state, training.engine, training.exchange, {.count = 2});
  const auto result = run(training, passes, random_batch(8));
  passes.apply_statistics(at::stack({result.statistics, result.statistics}));
  EXPECT_EQ(tracked_batches(training), 4);
}

// Like an algorithm that selects samples.
class OwnPass final : public Algorithm {
 public:
  std::string name() const override { return "OwnPass"; }
  bool match(Event event, const State&) const override { return event == Event::kAfterDataloader; }
  void apply(Event, State& state, Logger&) override {
    const at::NoGradGuard no_grad;
    state.model->forward(state.batch);
  }
};

TEST(PassesTest, StatisticsOfAListenersOwnPassCountToo) {
  Training training;
  Engine engine(training.state, training.logger, {.algorithms = {std::make_shared<OwnPass>()}});
  Passes passes(training.state, engine, training.exchange, {.count = 2});
  const auto result = run(training, passes, random_batch(8));
  passes.apply_statistics(result.statistics.unsqueeze(0));
  EXPECT_EQ(tracked_batches(training), 3);
}

TEST(PassesTest, StatisticsOfPassesBetweenStepsDoNot) {
  Training training;
  Passes passes(training.state, training.engine, training.exchange, {.count = 1});
  run(training, passes, random_batch(8));
  training.state.model->forward(random_batch(8));
  const auto result = run(training, passes, random_batch(8));
  passes.apply_statistics(result.statistics.unsqueeze(0));
  EXPECT_EQ(tracked_batches(training), 1);
}

TEST(PassesTest, StatisticsAreOfThisStepOnly) {
  Training training;
  Passes passes(training.state, training.engine, training.exchange, {.count = 2});
  EXPECT_GT(run(training, passes, random_batch(8)).statistics.abs().sum().item<float>(), 0.0f);
  training.state.timestamp.batch = 1;
  const auto result = run(training, passes, random_batch(8).narrow(0, 0));
  EXPECT_EQ(result.statistics.abs().sum().item<float>(), 0.0f);
}

TEST(PassesTest, EmptyMicrobatchesAddNothing) {
  Training training;
  const auto result = run(training, random_batch(8).narrow(0, 0), 2);
  EXPECT_EQ(result.verdict.loss_weight, 0);
  EXPECT_EQ(result.statistics.abs().sum().item<float>(), 0.0f);
  for (const auto& view : training.state.views) EXPECT_FALSE(view.tensor.grad().defined());
}

// The microbatches of one rank and the ranks' batches are parts of the same global batch.
TEST(PassesTest, DropoutGoesByThePlaceInTheGlobalBatch) {
  const std::string recipe =
      "seed = 3\n[model]\nkind = 'gpt'\nvocab_size = 8\nn_positions = 4\nn_embd = 8\nn_layer = 2\n"
      "n_head = 1\ndropout = 0.5\n[data.train]\nkind = 'synthetic'\nbatch_size = 4\n[optimizer]\nkind = "
      "'sgd'\n[train]\nmax_duration = '1ba'\n";
  Training training(recipe, kTokenSpec);
  const at::Tensor tokens = at::arange(16).remainder(8).view({4, 4});
  const Batch batch = TensorTree::Children{{"input", tokens}, {"target", tokens}};
  const auto loss = [&](const Batch& part, int64_t first_sample, int64_t count) {
    Passes passes(training.state, training.engine, training.exchange, {.count = count});
    return run(training, passes, part, first_sample).verdict.loss_sum;
  };
  const double first = loss(batch.narrow(0, 2), 0, 1), second = loss(batch.narrow(2, 2), 2, 1);
  for (const int64_t count : {1, 2, 4}) EXPECT_NEAR(loss(batch, 0, count), first + second, 1e-5) << count;
  EXPECT_GT(std::abs(loss(batch.narrow(2, 2), 0, 1) - second), 1e-3);
}

class CountingDraws final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override {
    drawn.push_back(context().draws("layer")->uniform(0, 1));
    drawn.push_back(context().draws("layer", context().first_sample + 1)->uniform(0, 1));
    return input;
  }
  const char* kind() const override { return "CountingDraws"; }
  std::vector<double> drawn;
};

TEST(PassesTest, LayersDrawOnceABatchOrByPlace) {
  Training training;
  auto layer = std::make_shared<CountingDraws>();
  replace_layers(*training.state.model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    return named.name == "relu" ? layer : nullptr;
  });
  run(training, random_batch(8), 2);
  ASSERT_EQ(layer->drawn.size(), 4u);
  EXPECT_EQ(layer->drawn[0], layer->drawn[2]);
  EXPECT_NE(layer->drawn[1], layer->drawn[3]);
}

// The last step must not matter: a resumed run has none.
TEST(PassesTest, LayersDrawByPlaceInAListenersOwnPassToo) {
  Training training;
  auto layer = std::make_shared<CountingDraws>();
  replace_layers(*training.state.model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    return named.name == "relu" ? layer : nullptr;
  });
  Engine engine(training.state, training.logger, {.algorithms = {std::make_shared<OwnPass>()}});
  Passes passes(training.state, engine, training.exchange, {.count = 2});
  for (int time = 0; time < 2; ++time) run(training, passes, random_batch(8), 16);
  ASSERT_EQ(layer->drawn.size(), 12u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(layer->drawn[6 + i], layer->drawn[i]) << i;
  EXPECT_EQ(layer->drawn[1], layer->drawn[3]) << "the first microbatch begins where the batch does";
}

TEST(PassOrderTest, IsAsserted) {
  Training training;
  Exchange& exchange = training.exchange;
  Pass pass;
  pass.verdict.memory_peak = {0};
  EXPECT_DEATH(exchange.begin_portion({}), "stage 2 of a pass follows stage 0");
  exchange.begin_pass();
  exchange.begin_portion({});
  EXPECT_DEATH(exchange.end_pass(), "stage 3 of a pass follows stage 2");
  exchange.end_portion();
  exchange.end_pass();
  EXPECT_DEATH(exchange.verdict(pass), "stage 0 of a pass follows stage 3");
  exchange.facts(pass);
  EXPECT_DEATH(exchange.abandon_pass(), "stage 3 of a pass follows stage 4");
  exchange.verdict(pass);
  exchange.begin_pass();
  exchange.abandon_pass();  // an exception may come anywhere
  exchange.facts(pass);
  exchange.verdict(pass);
}

}  // namespace
}  // namespace tutti
