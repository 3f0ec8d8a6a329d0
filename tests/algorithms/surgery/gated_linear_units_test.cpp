#include "algorithms/surgery/gated_linear_units.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/layers/bert_blocks.h"
#include "models/zoo/bert.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

BertForMaskedLm small_bert(const std::string& activation) {
  return BertForMaskedLm({.vocab_size = 19,
                          .hidden_size = 8,
                          .num_hidden_layers = 2,
                          .num_attention_heads = 2,
                          .intermediate_size = 12,
                          .hidden_act = activation,
                          .max_position_embeddings = 10});
}

// Kinds of the layers in the slots of this name.
std::vector<std::string> kinds_at(Layer& model, const std::string& name) {
  std::vector<std::string> kinds;
  for (const auto& one : slots(model))
    if (one.name.ends_with('.' + name)) kinds.emplace_back(one.slot->layer().kind());
  return kinds;
}

TEST(GatedLinearUnitsTest, ActAtInit) {
  const GatedLinearUnits algorithm;
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(algorithm.match(event, State()), event == Event::kInit) << name(event);
  }
}

TEST(GatedLinearUnitsTest, TheActivationIsThatOfTheBlocksUnlessOneIsGiven) {
  BertForMaskedLm own = small_bert("tanh"), given = small_bert("tanh");
  EXPECT_EQ(apply_gated_linear_units(own), 2);
  EXPECT_THAT(kinds_at(own, "output.act"), AllOf(SizeIs(2), Each("Tanh")));
  EXPECT_EQ(apply_gated_linear_units(given, std::make_shared<SiLU>()), 2);
  EXPECT_THAT(kinds_at(given, "output.act"), AllOf(SizeIs(2), Each("SiLU")));
}

TEST(GatedLinearUnitsTest, AllOtherWeightsAreAsWithoutThem) {
  BertForMaskedLm plain = small_bert("gelu"), gated = small_bert("gelu");
  apply_gated_linear_units(gated, nullptr, true, true);
  materialise(plain, 3);
  materialise(gated, 3);
  std::size_t same = 0;
  for (const auto& a : parameters(plain))
    for (const auto& b : parameters(gated))
      same += a.name == b.name && a.parameter->tensor.equal(b.parameter->tensor);
  EXPECT_EQ(same, parameters(plain).size() - 2 * 6) << "two Linears and a LayerNorm a block are gone";
  EXPECT_EQ(parameters(gated).size(), same + 2 * 8) << "three Linears and a LayerNorm have come";
}

// A user's own model with BERT's feed-forward block in it.
class ModelOfOwnBlock final : public Model {
 public:
  explicit ModelOfOwnBlock(bool whole) : output_(nullptr) {
    const BertBlockOptions options{.features = 4, .heads = 1, .intermediate = 6};
    if (whole) first_ = &add_slot("widen", std::make_shared<BertIntermediate>(options));
    output_ = &add_slot("narrow", std::make_shared<BertOutput>(options));
  }
  TensorTree forward(const Batch& batch) override {
    const at::Tensor& x = batch["input"];
    return (*output_)(Residual{(*first_)(x), x}.tree());
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "ModelOfOwnBlock"; }

 private:
  Slot* first_ = nullptr;
  Slot* output_;
};

TEST(GatedLinearUnitsTest, ModelsOfAUsersOwnHaveThemToo) {
  ModelOfOwnBlock model(/*whole=*/true);
  EXPECT_EQ(apply_gated_linear_units(model), 1);
  materialise(model, 1);
  const Batch batch = TensorTree::Children{{"input", at::randn({2, 3, 4})}};
  EXPECT_EQ(model.forward(batch).tensor().sizes(), at::IntArrayRef({2, 3, 4}));
  ModelOfOwnBlock half(/*whole=*/false);
  EXPECT_THROW(apply_gated_linear_units(half), UserError) << "nothing says which activation";
  EXPECT_EQ(apply_gated_linear_units(half, std::make_shared<ReLU>()), 1);
}

TEST(GatedLinearUnitsTest, AModelWithoutSuchBlocksIsAWarning) {
  State state;
  std::string warned;
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  state.model = std::make_shared<Mlp>(MlpOptions{.in_features = 8, .hidden = {4}, .num_classes = 10});
  Logger logger;
  GatedLinearUnits().apply(Event::kInit, state, logger);
  EXPECT_THAT(warned, AllOf(HasSubstr("GatedLinearUnits has no effect: Mlp"), HasSubstr("BertOutput")));
  warned.clear();
  state.topology.rank = 1;
  GatedLinearUnits().apply(Event::kInit, state, logger);
  EXPECT_EQ(warned, "") << "one rank is enough";
}

}  // namespace
}  // namespace tutti
