#include "sharding/units.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/zoo/gpt.h"
#include "models/zoo/unet.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Unit>& units) {
  std::vector<std::string> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  return names;
}

std::vector<std::string> parameters_in(Layer& model, const Unit& unit) {
  const auto all = parameters(model);
  std::vector<std::string> names;
  for (const std::size_t p : unit.parameters) names.push_back(all[p].name);
  return names;
}

std::shared_ptr<Layer> linear(int64_t in, int64_t out) { return std::make_shared<Linear>(in, out, false); }

// Every parameter is in one unit.
void expect_partition(Layer& model, const std::vector<Unit>& units) {
  std::vector<std::size_t> seen;
  for (const Unit& unit : units) seen.insert(seen.end(), unit.parameters.begin(), unit.parameters.end());
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), parameters(model).size());
  for (std::size_t p = 0; p < seen.size(); ++p) EXPECT_EQ(seen[p], p);
}

TEST(Units, AreTheBlocksThatRepeat) {
  Gpt gpt({.n_positions = 8, .n_embd = 8, .n_layer = 3, .n_head = 2});
  const auto units = find_units(gpt);
  EXPECT_THAT(names_of(units), ElementsAre("model", "transformer.h.0", "transformer.h.1", "transformer.h.2"));
  EXPECT_THAT(parameters_in(gpt, units[0]), ElementsAre("transformer.wte.weight", "transformer.wpe.weight",
                                                        "transformer.ln_f.weight", "transformer.ln_f.bias"));
  expect_partition(gpt, units);
}

TEST(Units, AreFoundWithinContainers) {
  Sequential chain({linear(4, 4), std::make_shared<Sequential>(std::vector{linear(4, 5), linear(5, 4)}),
                    std::make_shared<Sequential>(std::vector{linear(4, 6)})});
  EXPECT_THAT(names_of(find_units(chain)), ElementsAre("model", "1.0", "1.1"));
}

// Stages that are not called are left to the root.
TEST(Units, OfAUnetAreTheBlocksOfBothItsSides) {
  Unet unet({.encoder_name = "resnet18",
             .encoder_width = 2,
             .encoder_depth = 3,
             .decoder_channels = {4, 3, 2},
             .in_channels = 1});
  materialise(unet, 1);
  Batch batch;
  batch.set("input", at::ones({2, 1, 8, 8}));
  const auto units = find_units(unet, {}, [&] { unet.forward(batch); });
  EXPECT_THAT(names_of(units),
              ElementsAre("model", "encoder.layer1.0", "encoder.layer1.1", "encoder.layer2.0",
                          "encoder.layer2.1", "decoder.blocks.0", "decoder.blocks.1", "decoder.blocks.2"));
  expect_partition(unet, units);
}

TEST(Units, AreChosenByKindByPatternOrBySize) {
  Gpt gpt({.n_positions = 8, .n_embd = 8, .n_layer = 2, .n_head = 2});
  const auto chosen = [&](const ShardingSettings& settings) {
    const auto units = find_units(gpt, settings);
    expect_partition(gpt, units);
    return names_of(units);
  };
  EXPECT_THAT(chosen({.units = {{"GptMlp"}}}),
              ElementsAre("model", "transformer.h.0.mlp", "transformer.h.1.mlp"));
  EXPECT_THAT(chosen({.units = {{"*.1.attn", "GptMlp"}}}),
              ElementsAre("model", "transformer.h.0.mlp", "transformer.h.1.attn", "transformer.h.1.mlp"));
  EXPECT_THAT(chosen({.unit_mb = 0.003}),  // a block has 0.0033 MiB, its parts less than 0.0022
              ElementsAre("model", "transformer.h.0", "transformer.h.1"));
}

TEST(Units, LeaveATiedTableToTheRoot) {
  Gpt gpt({.n_positions = 8, .n_embd = 8, .n_layer = 2, .n_head = 2});
  const auto units = find_units(gpt, {.units = {{"transformer.wte", "transformer.wpe"}}});
  EXPECT_THAT(names_of(units), ElementsAre("model", "transformer.wpe"));
  const auto whole = find_units(gpt, {.units = {{"Transformer"}}});
  EXPECT_THAT(names_of(whole), ElementsAre("model", "transformer"));
  EXPECT_TRUE(whole[0].parameters.empty()) << "the table is read within the unit";
}

TEST(Units, LeaveALayerInSeveralSlotsToTheRoot) {
  const auto shared = linear(4, 4);
  Sequential chain({linear(4, 4), shared, linear(4, 4), shared});
  const auto units = find_units(chain);
  EXPECT_THAT(names_of(units), ElementsAre("model", "0", "2"));
  EXPECT_THAT(parameters_in(chain, units[0]), ElementsAre("1.weight"));
  expect_partition(chain, units);
}

TEST(Units, StandInTheOrderOfCalls) {
  Sequential chain({linear(4, 4), linear(4, 4), linear(4, 4), linear(4, 4)});
  const auto call = [&](int at) { (*chain.slots()[at])(at::zeros({1, 4}, at::kMeta)); };
  const auto units = find_units(chain, {}, [&] {
    for (const int at : {2, 0, 3, 0}) call(at);
  });
  EXPECT_THAT(names_of(units), ElementsAre("model", "2", "3"));
  EXPECT_THAT(parameters_in(chain, units[0]), ElementsAre("0.weight", "1.weight"));
  const auto unknown = find_units(chain, {}, [&] {
    call(2);
    throw UserError("no such sample");
  });
  EXPECT_THAT(names_of(unknown), ElementsAre("model", "0", "1", "2", "3"));
}

TEST(Units, AreNoneInAModelWithoutRepetition) {
  Sequential chain({linear(4, 4), std::make_shared<ReLU>()});
  const auto units = find_units(chain);
  EXPECT_THAT(names_of(units), ElementsAre("model"));
  expect_partition(chain, units);
}

}  // namespace
}  // namespace tutti
