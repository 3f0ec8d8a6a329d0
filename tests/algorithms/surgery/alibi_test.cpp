#include "algorithms/surgery/alibi.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"
#include "models/layers/attention.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/zoo/gpt.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "training/optimizers/sgd.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr GptOptions kSmallGpt{.vocab_size = 23, .n_positions = 6, .n_embd = 8, .n_layer = 2, .n_head = 2};

// A user's attention: one head that looks everywhere, with scores of zero, and a factor.
class OwnAttention final : public SelfAttention {
 public:
  OwnAttention() : factor_(add_parameter("factor", {}, constant_init(1.0))) {}
  TensorTree forward(const TensorTree& input) override {
    const at::Tensor& x = input.tensor();  // [N, T, features]
    const int64_t length = x.size(1);
    at::Tensor scores = at::zeros({1, 1, length, length});
    const at::Tensor bias = position_bias(length, x.device());
    if (bias.defined()) scores = scores + bias;
    return at::matmul(scores.softmax(-1).squeeze(1), x) * factor_.tensor;
  }
  const char* kind() const override { return "OwnAttention"; }
  int64_t heads() const override { return 1; }
  bool causal() const override { return false; }

 private:
  Parameter& factor_;
};

class ModelOfOwnAttention final : public Model {
 public:
  ModelOfOwnAttention()
      : positions_(add_slot("places", std::make_shared<LearnedPositions>(4, 1))),
        mix_(add_slot("mix", std::make_shared<OwnAttention>())) {}
  TensorTree forward(const Batch& batch) override {
    const at::Tensor& x = batch["input"];
    return mix_(x + positions_(at::arange(x.size(1), at::kLong)));
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "ModelOfOwnAttention"; }

 private:
  Slot& positions_;
  Slot& mix_;
};

TEST(AlibiTest, ActsAtInitAndAfterTheDataloader) {
  const Alibi alibi(8);
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(alibi.match(event, State()), event == Event::kInit || event == Event::kAfterDataloader)
        << name(event);
  }
}

TEST(AlibiTest, BiasesAnAttentionOfAUsersOwn) {
  ModelOfOwnAttention model;
  materialise(model, 1);
  EXPECT_EQ(apply_alibi(model, 5), 1);
  materialise(model, 1);
  const at::Tensor x = at::tensor({1, 0, 0, 0, 0}, at::kFloat).view({1, 5, 1});
  const at::Tensor mixed = model.forward(TensorTree::Children{{"input", x}}).tensor();
  // A head alone has the slope 2^-8; positions are zeros now, for 5 tokens in place of 4.
  const at::Tensor places = at::arange(5, at::kFloat);
  const at::Tensor scores = (places.unsqueeze(1) - places).abs() * -std::exp2(-8.0);
  EXPECT_TRUE(at::allclose(mixed.view({5}), scores.softmax(1).select(1, 0), 1e-5, 1e-7));
}

TEST(AlibiTest, TheOptimizerOfALoopOfOnesOwnFollows) {
  Trainee own;
  own.model = std::make_shared<ModelOfOwnAttention>();
  follow_surgery(own, 1);  // the first look at the model
  own.optimizer =
      std::make_unique<Sgd>(own.views, Optimizer::Common{.lr = 0.5}, Sgd::Options{.momentum = 0.9});
  const auto step = [&](int64_t length) {
    const Batch batch = TensorTree::Children{{"input", at::ones({2, length, 1})}};
    own.loss_of(own.forward(batch), batch).backward();
    for (ParamView& view : own.views) view.grad = std::exchange(view.tensor.mutable_grad(), {});
    own.optimizer->step();
  };
  step(4);
  ASSERT_EQ(own.views.size(), 2U);
  EXPECT_EQ(apply_alibi(*own.model, 9), 1);
  follow_surgery(own, 1);
  ASSERT_EQ(own.views.size(), 1U) << "the positions are not trained any more";
  EXPECT_EQ(own.views[0].name, "mix.factor");
  const double before = own.views[0].tensor.item<double>();
  step(9);
  EXPECT_EQ(own.optimizer->steps(0), 2);
  EXPECT_LT(own.views[0].tensor.item<double>(), before - 0.5) << "its momentum stays";
}

TEST(AlibiTest, PositionsAreNoLongerTrained) {
  Gpt model(kSmallGpt);
  EXPECT_EQ(apply_alibi(model, 12), 2);
  materialise(model, 1);
  for (const auto& one : parameters(model)) EXPECT_NE(one.name, "transformer.wpe.weight");
  for (const auto& one : buffers(model)) {
    EXPECT_EQ(one.name, "transformer.wpe.weight");
    EXPECT_EQ(one.buffer->tensor.sizes(), at::IntArrayRef({12, 8}));
    EXPECT_EQ(one.buffer->tensor.abs().sum().item<double>(), 0.0);
  }
  EXPECT_EQ(buffers(model).size(), 1U);
}

// As of a file of weights from before surgery.
TEST(AlibiTest, PositionsSayNothingWhateverIsLoaded) {
  Gpt model(kSmallGpt);
  apply_alibi(model, 6);
  materialise(model, 1);
  const Batch batch = TensorTree::Children{{"input", at::arange(6, at::kLong).view({1, 6})}};
  const at::Tensor before = model.forward(batch).tensor();
  buffers(model)[0].buffer->tensor.fill_(3.0);
  EXPECT_TRUE(model.forward(batch).tensor().equal(before));
}

TEST(AlibiTest, AllOtherWeightsAreAsWithoutIt) {
  Gpt plain(kSmallGpt), changed(kSmallGpt);
  apply_alibi(changed, 12);
  materialise(plain, 3);
  materialise(changed, 3);
  std::size_t same = 0;
  for (const auto& a : parameters(plain))
    for (const auto& b : parameters(changed))
      same += a.name == b.name && a.parameter->tensor.equal(b.parameter->tensor);
  EXPECT_EQ(same, parameters(plain).size() - 1);
}

TEST(AlibiTest, GeneratedTokensSeeMoreThanTheModelWasBuiltFor) {
  Gpt model(kSmallGpt);
  apply_alibi(model, 12);
  materialise(model, 1);
  EXPECT_EQ(longest_sequence(model), 12);
  std::size_t seen = 0;
  const auto watch =
      model.slots()[0]->before([&](const TensorTree& tokens) { seen = tokens.tensor().size(1); });
  model.generate({{Tokens(30, 7), RandomKey(3, "test")}}, {.max_new_tokens = 1});
  EXPECT_EQ(seen, 12U);
}

TEST(AlibiTest, CutsABatchWithoutWritingIntoIt) {
  Alibi alibi(8, 0.5);
  State state;
  const at::Tensor tokens = at::arange(12, at::kLong).view({3, 4});
  state.batch = TensorTree::Children{{"input", tokens}, {"target", tokens + 1}};
  state.first_sample = 9;
  const Batch given = state.batch;
  Logger logger;
  alibi.apply(Event::kAfterDataloader, state, logger);
  EXPECT_TRUE(state.batch["input"].equal(at::arange(12, at::kLong).view({6, 2})));
  EXPECT_TRUE(state.batch["target"].equal(at::arange(1, 13, at::kLong).view({6, 2})));
  EXPECT_EQ(given["input"].sizes(), at::IntArrayRef({3, 4}));
  EXPECT_EQ(state.first_sample, 18) << "the three ranks before have two sequences a sample too";
}

TEST(AlibiTest, ARankWithoutSamplesHasNoneAfterwards) {
  Alibi alibi(8);
  State state;
  state.batch = TensorTree::Children{{"input", at::zeros({0, 8}, at::kLong)}};
  Logger logger;
  alibi.apply(Event::kAfterDataloader, state, logger);
  EXPECT_EQ(state.batch["input"].sizes(), at::IntArrayRef({0, 2}));
}

TEST(AlibiTest, ArraysThatAreNoSequencesAreRefused) {
  const auto cutting = [](const at::Tensor& rows, double scaling) {
    return [=] { cut_sequences(TensorTree::Children{{"input", rows}}, scaling); };
  };
  EXPECT_NO_THROW(cutting(at::zeros({3, 8}), 0.75)());
  EXPECT_THAT(
      cutting(at::zeros({2, 8}), 0.75),
      ThrowsMessage<UserError>(HasSubstr("2 sequences of 8 tokens cannot be cut into whole ones of 6")));
  EXPECT_THAT(cutting(at::zeros({4}), 0.5), ThrowsMessage<UserError>(HasSubstr("[4]")));
  EXPECT_THAT(cutting(at::zeros({4, 3}), 0.25), ThrowsMessage<UserError>(HasSubstr("whole ones of 0")));
}

// Checks the samples when a run begins: a batch that could not be cut later is an error at once.
struct AlibiBeginning {
  explicit AlibiBeginning(const Dataset& data) {
    state.model = std::make_shared<Gpt>(kSmallGpt);
    state.dataset = &data;
    state.train_samples = data.size();
    state.global_batch = 6;
    state.dataloader_len = (data.size() + 5) / 6;
    state.services->on_warning = [this](const std::string& what) { warned = what; };
  }
  void init(Alibi alibi) {
    Logger logger;
    alibi.apply(Event::kInit, state, logger);
  }

  State state;
  std::string warned;
};

SyntheticDataset sequence_data(int64_t samples, int64_t length) {
  return SyntheticDataset({.samples = samples,
                           .shape = {length},
                           .targets = SyntheticDataset::Targets::kSequence,
                           .classes = 23});
}

TEST(AlibiTest, SamplesThatCannotBeCutAreRefusedAtTheBeginning) {
  const auto beginning = [](int64_t samples, int64_t length, double scaling, int world = 1) {
    return [=] {
      const SyntheticDataset data = sequence_data(samples, length);
      AlibiBeginning run(data);
      run.state.topology.data_world = world;
      run.init(Alibi(12, scaling));
    };
  };
  EXPECT_NO_THROW(beginning(12, 8, 0.25)());
  EXPECT_NO_THROW(beginning(13, 8, 0.25)()) << "a short batch";
  EXPECT_NO_THROW(beginning(12, 8, 0.75)()) << "6 sequences of 8 are 8 of 6";
  const std::string key = "train_sequence_length_scaling = 0.75";
  EXPECT_THAT(beginning(13, 8, 0.75), ThrowsMessage<UserError>(HasSubstr(key))) << "one sequence is not";
  EXPECT_NO_THROW(beginning(12, 8, 0.75, 2)()) << "3 are 4";
  EXPECT_THAT(beginning(12, 8, 0.75, 4), ThrowsMessage<UserError>(HasSubstr(key))) << "1 or 2 are not";
  EXPECT_THAT(beginning(12, 3, 0.25), ThrowsMessage<UserError>(HasSubstr("whole ones of 0")));
  const SyntheticDataset labelled({.samples = 12, .shape = {8}});
  AlibiBeginning run(labelled);
  EXPECT_THAT(
      [&] { run.init(Alibi(12)); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("'target'"), HasSubstr("1 leaves batches as they are"))));
  EXPECT_NO_THROW(run.init(Alibi(12, 1.0)));
}

// Samples of a text of 8 tokens and one of `length`.
class Pairs final : public Dataset {
 public:
  explicit Pairs(int64_t length) : length_(length) {}
  int64_t size() const override { return 12; }
  SampleSpec spec() const override { return {.shapes = {{"input_ids", {8}}, {"positive_ids", {length_}}}}; }
  Batch get(std::span<const int64_t>, const Epoch&) const override { return {}; }
  uint64_t digest() const override { return 0; }

 private:
  int64_t length_;
};

TEST(AlibiTest, ArraysThatGiveDifferentNumbersOfSequencesAreRefusedAtTheBeginning) {
  const auto beginning = [](int64_t length, double scaling) {
    return [=] {
      const Pairs data(length);
      AlibiBeginning(data).init(Alibi(16, scaling));
    };
  };
  EXPECT_NO_THROW(beginning(8, 0.25)());
  EXPECT_NO_THROW(beginning(12, 0.25)()) << "both are four";
  EXPECT_NO_THROW(beginning(5, 1.0)());
  EXPECT_THAT(beginning(5, 0.25),
              ThrowsMessage<UserError>(AllOf(HasSubstr("train_sequence_length_scaling = 0.25"),
                                             HasSubstr("'input_ids' has 8"), HasSubstr("'positive_ids' 5"))));
}

TEST(AlibiTest, AModelWithoutAttentionIsAWarning) {
  const SyntheticDataset labelled({.samples = 12, .shape = {8}});
  AlibiBeginning run(labelled);
  run.state.model = std::make_shared<Mlp>(MlpOptions{.in_features = 8, .hidden = {4}, .num_classes = 10});
  Alibi alibi(12);
  Logger logger;
  alibi.apply(Event::kInit, run.state, logger);
  EXPECT_THAT(run.warned, AllOf(HasSubstr("Alibi has no effect: Mlp"), HasSubstr("SelfAttention")));
  run.state.batch = TensorTree::Children{{"input", at::zeros({6, 8})}};
  alibi.apply(Event::kAfterDataloader, run.state, logger);
  EXPECT_EQ(run.state.batch["input"].size(0), 6);
}

}  // namespace
}  // namespace tutti
