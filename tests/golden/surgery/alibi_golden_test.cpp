#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/alibi.h"
#include "models/zoo/gpt.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kAlibiFile = "alibi.h5";

void expect_slopes(const GoldenCase& c) {
  c.expect_only({}, {"n_heads"});
  const at::Tensor all = c.tensor("in/n_heads");
  std::set<std::string> outputs;
  for (int64_t i = 0; i < all.numel(); ++i) {
    const int64_t heads = all[i].item<int64_t>();
    const std::string name = "slopes_" + std::to_string(heads);
    c.expect_close(at::tensor(alibi_slopes(heads), at::kDouble), "out/" + name);
    outputs.insert(name);
  }
  c.expect_only_outputs(outputs);
}

void expect_bias(const GoldenCase& c) {
  c.expect_only({"causal", "max_token_length", "n_heads"}, {"dummy"});
  c.expect_only_outputs({"alibi"});
  c.expect_close(
      alibi_bias(static_cast<int64_t>(c.number("n_heads")),
                 static_cast<int64_t>(c.number("max_token_length")), c.number("causal") != 0, at::kCPU),
      "out/alibi");
}

Batch tokens(const GoldenCase& c, const std::string& dataset, const std::string& name) {
  return TensorTree::Children{{name, c.tensor(dataset)}};
}

Slot& slot_named(Layer& model, const std::string& name) {
  for (const auto& one : slots(model))
    if (one.name == name) return *one.slot;
  throw std::logic_error("the model has no slot " + name);
}

// The attention probabilities of block 0, [N, heads, T, T]: what the attention makes of values that are rows
// of the identity, as many columns at a time as a head has features.
at::Tensor probabilities(Gpt& model, const Batch& batch) {
  const int64_t heads = model.options().n_head, features = model.options().n_embd / heads;
  const int64_t samples = batch["input"].size(0), length = batch["input"].size(1);
  Slot& c_attn = slot_named(model, "transformer.h.0.attn.c_attn");
  Slot& c_proj = slot_named(model, "transformer.h.0.attn.c_proj");
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < length; first += features) {
    const int64_t columns = std::min(features, length - first);
    const Slot::Hook identity = c_attn.after([&](const TensorTree&, TensorTree output) -> TensorTree {
      at::Tensor all = output.tensor().clone();
      at::Tensor values = all.narrow(-1, 2 * heads * features, heads * features).zero_();
      values.view({samples, length, heads, features})
          .narrow(-1, 0, columns)
          .copy_(at::eye(length).narrow(1, first, columns).view({1, length, 1, columns}));
      return all;
    });
    const Slot::Hook watch = c_proj.before([&](const TensorTree& mixed) {
      parts.push_back(
          mixed.tensor().view({samples, length, heads, features}).narrow(-1, 0, columns).transpose(1, 2));
    });
    evaluated(model, batch);
  }
  return at::cat(parts, -1);
}

void expect_gpt(const GoldenCase& c) {
  c.expect_only({"max_sequence_length", "n_embd", "n_head", "n_layer", "n_positions", "transformers_version",
                 "vocab_size"},
                {"input_ids_short", "input_ids_long", "weights"});
  c.expect_only_outputs(
      {"alibi", "attn0_after_short", "logits_before", "logits_after_short", "logits_after_long"});
  const auto size = [&](const char* name) { return static_cast<int64_t>(c.number(name)); };
  Gpt model({.vocab_size = size("vocab_size"),
             .n_positions = size("n_positions"),
             .n_embd = size("n_embd"),
             .n_layer = size("n_layer"),
             .n_head = size("n_head")});
  materialise(model, 1);
  load_weights(c, model, {{"lm_head.weight", "transformer.wte.weight"}});
  const Batch brief = tokens(c, "in/input_ids_short", "input"),
              extended = tokens(c, "in/input_ids_long", "input");
  c.expect_close(evaluated(model, brief), "out/logits_before");
  const int64_t longest = size("max_sequence_length");
  EXPECT_EQ(apply_alibi(model, longest), size("n_layer"));
  materialise(model, 1);
  c.expect_close(alibi_bias(size("n_head"), longest, /*causal=*/true, at::kCPU), "out/alibi");
  c.expect_close(evaluated(model, brief), "out/logits_after_short");
  c.expect_close(evaluated(model, extended), "out/logits_after_long");
  c.expect_close(probabilities(model, brief), "out/attn0_after_short");
}

void expect_bert(const GoldenCase& c) {
  std::set<std::string> parameters = bert_sizes();
  parameters.insert("max_sequence_length");
  c.expect_only(parameters, {"attention_mask", "input_ids", "input_ids_long", "weights"});
  c.expect_only_outputs({"logits_before", "logits_after", "logits_after_long"});
  BertForMaskedLm model(bert_options(c));
  materialise(model, 1);
  load_weights(c, model, tied_by_bert());
  Batch padded = tokens(c, "in/input_ids", "input_ids");
  if (c.holds("in/attention_mask")) padded.set("attention_mask", c.tensor("in/attention_mask"));
  c.expect_close(evaluated(model, padded), "out/logits_before");
  EXPECT_EQ(apply_alibi(model, static_cast<int64_t>(c.number("max_sequence_length"))),
            model.options().num_hidden_layers);
  materialise(model, 1);
  c.expect_close(evaluated(model, padded), "out/logits_after");
  c.expect_close(evaluated(model, tokens(c, "in/input_ids_long", "input_ids")), "out/logits_after_long");
}

void expect_cut(const GoldenCase& c) {
  c.expect_only({"train_sequence_length_scaling"});
  Alibi alibi(1000, c.number("train_sequence_length_scaling"));
  State state;
  std::set<std::string> names;
  for (const std::string& name : c.names("in")) {
    state.batch.set(name, c.tensor("in/" + name));
    names.insert(name);
  }
  Logger logger;
  alibi.apply(Event::kAfterDataloader, state, logger);
  c.expect_only_outputs(names);
  for (const std::string& name : names) c.expect_close(state.batch[name], "out/" + name);
}

class GoldenAlibi : public testing::TestWithParam<std::string> {};

TEST_P(GoldenAlibi, IsComposers) {
  const GoldenCase c(golden_path(kAlibiFile), GetParam());
  const std::string api = c.text("composer_api");
  if (api.ends_with("_get_alibi_head_slopes")) return expect_slopes(c);
  if (api.ends_with("register_alibi")) return expect_bias(c);
  if (api.ends_with("Alibi.apply")) return expect_cut(c);
  ASSERT_TRUE(api.ends_with("apply_alibi")) << c.title() << ": no test knows " << api;
  if (c.has("n_embd")) return expect_gpt(c);
  expect_bert(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenAlibi, testing::ValuesIn(golden_cases(golden_path(kAlibiFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAlibi);

}  // namespace
}  // namespace tutti
