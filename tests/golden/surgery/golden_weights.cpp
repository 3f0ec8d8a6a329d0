#include "tests/golden/surgery/golden_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "models/layers/blocks.h"
#include "models/zoo/layer_text.h"
#include "tests/golden/golden_recipe.h"

namespace tutti {

void load_weights(const GoldenCase& c, Layer& model, const TiedNames& tied) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> own;
  for (const auto& one : parameters(model)) own[one.name] = one.parameter->tensor;
  std::map<std::string, at::Tensor> own_buffers;
  for (const auto& one : buffers(model)) own_buffers[one.name] = one.buffer->tensor;
  for (const std::string& name : c.names("in/weights")) {
    const at::Tensor value = c.tensor("in/weights/" + name);
    if (const auto other = tied.find(name); other != tied.end()) {
      EXPECT_TRUE(value.equal(c.tensor("in/weights/" + other->second))) << c.title() << ": " << name;
      continue;
    }
    if (const auto buffer = own_buffers.find(name); buffer != own_buffers.end()) {
      buffer->second.copy_(value.view_as(buffer->second));
      continue;
    }
    ASSERT_EQ(own.count(name), 1U) << c.title() << ": the model has no " << name;
    ASSERT_EQ(own.at(name).sizes(), value.sizes()) << c.title() << ": " << name;
    own.at(name).copy_(value);
    own.erase(name);
  }
  for (const auto& [name, tensor] : own) ADD_FAILURE() << c.title() << " has no weight " << name;
}

std::shared_ptr<Layer> sequential_of(const std::string& arch) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (const std::string& text : layer_texts(arch)) layers.push_back(make_layer(text));
  return std::make_shared<Sequential>(std::move(layers));
}

void expect_gradients(const GoldenCase& c, Layer& model, const std::vector<NamedParameter>& named,
                      const std::string& outputs) {
  const at::Tensor x = c.tensor("in/x").requires_grad_();
  const at::Tensor y = model.forward(x).tensor();
  c.expect_close(y.detach(), outputs);
  y.backward(c.tensor("in/grad_y"));
  c.expect_close(x.grad(), "out/grad_x");
  EXPECT_EQ(c.names("out/grad").size(), named.size()) << c.title();
  for (const auto& one : named) c.expect_close(one.parameter->tensor.grad(), "out/grad/" + one.name);
}

std::vector<int64_t> indices_of(const GoldenCase& c, const char* attribute) {
  std::vector<int64_t> indices;
  if (c.is_text(attribute))
    for (const std::string& one : parts_of(c.text(attribute))) indices.push_back(std::stoll(one));
  else
    for (const double one : c.numbers(attribute)) indices.push_back(static_cast<int64_t>(one));
  return indices;
}

std::vector<int64_t> places_of(const Layer& sequential, const std::string& kind) {
  std::vector<int64_t> places;
  for (const auto& slot : sequential.slots())
    if (slot->layer().kind() == kind) places.push_back(std::stoll(slot->name()));
  return places;
}

bool flag(const GoldenCase& c, const char* attribute) { return c.has(attribute) && c.number(attribute) != 0; }

BertOptions bert_options(const GoldenCase& c) {
  const auto size = [&](const char* name) { return static_cast<int64_t>(c.number(name)); };
  const auto rows = [&](const std::string& table) {
    return c.tensor("in/weights/bert.embeddings." + table + "_embeddings.weight").size(0);
  };
  return {.vocab_size = size("vocab_size"),
          .hidden_size = size("hidden_size"),
          .num_hidden_layers = size("num_hidden_layers"),
          .num_attention_heads = size("num_attention_heads"),
          .intermediate_size = size("intermediate_size"),
          .hidden_dropout_prob = 0.0,
          .attention_probs_dropout_prob = 0.0,
          .max_position_embeddings = rows("position"),
          .type_vocab_size = rows("token_type")};
}

const std::set<std::string>& bert_sizes() {
  static const std::set<std::string> names = {"vocab_size",        "hidden_size",
                                              "num_hidden_layers", "num_attention_heads",
                                              "intermediate_size", "transformers_version"};
  return names;
}

const TiedNames& tied_by_bert() {
  static const TiedNames names = {
      {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
      {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  return names;
}

std::set<std::string> parameter_names(Layer& model) {
  std::set<std::string> names;
  for (const auto& one : parameters(model)) names.insert(one.name);
  return names;
}

at::Tensor evaluated(Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  const ForwardContext evaluating{.training = false};
  set_context(model, &evaluating);
  at::Tensor outputs = model.eval_forward(batch).tensor();
  set_context(model, nullptr);
  return outputs;
}

}  // namespace tutti
