#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "algorithms/surgery/gated_linear_units.h"
#include "models/layers/activation.h"
#include "models/layers/bert_blocks.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kGatedFile = "gated_linear_units.h5";

// torch.nn.functional's, by name.
std::shared_ptr<Layer> activation_of(const GoldenCase& c) {
  if (!c.has("act_fn")) return nullptr;
  const std::string name = c.text("act_fn");
  std::shared_ptr<Layer> made = name == "sigmoid" ? std::make_shared<Sigmoid>() : make_activation(name);
  if (!made) throw std::logic_error("no test knows the activation " + name);
  return made;
}

void expect_gated_layer(const GoldenCase& c) {
  c.expect_only({"act_fn", "dropout_rate", "layernorm_eps", "gated_layer_bias", "non_gated_layer_bias"},
                {"h", "residual", "grad_y", "weights"});
  c.expect_only_outputs({"y", "grad_h", "grad_residual", "grad"});
  const at::Tensor wo = c.tensor("in/weights/wo.weight");
  BertGatedFfOutput layer({.features = wo.size(0),
                           .intermediate = wo.size(1),
                           .dropout = c.number("dropout_rate"),
                           .act_fn = activation_of(c),
                           .norm_eps = c.number("layernorm_eps"),
                           .gated_layer_bias = flag(c, "gated_layer_bias"),
                           .non_gated_layer_bias = flag(c, "non_gated_layer_bias")});
  materialise(layer, 1);
  load_weights(c, layer);
  const Residual given{c.tensor("in/h").requires_grad_(), c.tensor("in/residual").requires_grad_()};
  const at::Tensor y = layer.forward(given.tree()).tensor();
  c.expect_close(y.detach(), "out/y");
  y.backward(c.tensor("in/grad_y"));
  c.expect_close(given.output.grad(), "out/grad_h");
  c.expect_close(given.residual.grad(), "out/grad_residual");
  for (const auto& one : parameters(layer))
    c.expect_close(one.parameter->tensor.grad(), "out/grad/" + one.name);
}

std::vector<std::string> difference(const std::set<std::string>& of, const std::set<std::string>& without) {
  std::vector<std::string> found;
  std::ranges::set_difference(of, without, std::back_inserter(found));
  return found;
}

void expect_gated_bert(const GoldenCase& c) {
  std::set<std::string> known = bert_sizes();
  known.insert({"act_fn", "gated_layer_bias", "non_gated_layer_bias", "added_params", "removed_params"});
  c.expect_only(known, {"input_ids", "weights"});
  c.expect_only_outputs({"logits"});
  BertForMaskedLm model(bert_options(c));
  const auto before = parameter_names(model);
  EXPECT_EQ(apply_gated_linear_units(model, activation_of(c), flag(c, "gated_layer_bias"),
                                     flag(c, "non_gated_layer_bias")),
            model.options().num_hidden_layers);
  const auto after = parameter_names(model);
  EXPECT_THAT(difference(after, before),
              testing::UnorderedElementsAreArray(parts_of(c.text("added_params"))));
  EXPECT_THAT(difference(before, after),
              testing::UnorderedElementsAreArray(parts_of(c.text("removed_params"))));
  materialise(model, 1);
  load_weights(c, model, tied_by_bert());
  const Batch batch = TensorTree::Children{{"input_ids", c.tensor("in/input_ids")}};
  c.expect_close(evaluated(model, batch), "out/logits");
}

class GoldenGatedLinearUnits : public testing::TestWithParam<std::string> {};

TEST_P(GoldenGatedLinearUnits, AreComposers) {
  const GoldenCase c(golden_path(kGatedFile), GetParam());
  const std::string api = c.text("composer_api");
  if (api.ends_with("BERTGatedFFOutput")) return expect_gated_layer(c);
  ASSERT_TRUE(api.ends_with("apply_gated_linear_units")) << c.title() << ": no test knows " << api;
  expect_gated_bert(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGatedLinearUnits,
                         testing::ValuesIn(golden_cases(golden_path(kGatedFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGatedLinearUnits);

}  // namespace
}  // namespace tutti
