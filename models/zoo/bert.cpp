#include "models/zoo/bert.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "models/layers/activation.h"
#include "models/layers/bert_blocks.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/losses.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"

namespace tutti {
namespace {

constexpr const char* kAccuracy = "MulticlassAccuracy";
constexpr int64_t kFewestClasses = 2;  // where nobody says how many

// The array by its name in transformers, or else in tutti.
const at::Tensor& array_of(const Batch& batch, const char* name, const char* other) {
  const TensorTree* tensors = batch.find(name);
  return tensors ? tensors->tensor() : batch[other];
}

const at::Tensor& tokens_of(const Batch& batch) { return array_of(batch, "input_ids", "input"); }
const at::Tensor& labels_of(const Batch& batch) { return array_of(batch, "labels", "target"); }

BertBlockOptions block_options(const BertOptions& o) {
  return {.features = o.hidden_size,
          .heads = o.num_attention_heads,
          .intermediate = o.intermediate_size,
          .activation = o.hidden_act,
          .dropout = o.hidden_dropout_prob,
          .attention_dropout = o.attention_probs_dropout_prob,
          .norm_eps = o.layer_norm_eps,
          .deviation = o.initializer_range};
}

// "bert.embeddings": the sum of a token's three embeddings, normalised.
class Embeddings final : public Layer {
 public:
  explicit Embeddings(const BertOptions& o)
      : words_(add_slot("word_embeddings",
                        std::make_shared<TokenEmbedding>(o.vocab_size, o.hidden_size, o.pad_token_id,
                                                         o.initializer_range))),
        positions_(add_slot("position_embeddings",
                            std::make_shared<LearnedPositions>(o.max_position_embeddings, o.hidden_size,
                                                               o.initializer_range))),
        types_(add_slot("token_type_embeddings",
                        std::make_shared<Embedding>(o.type_vocab_size, o.hidden_size, o.initializer_range))),
        norm_(add_slot("LayerNorm", std::make_shared<LayerNorm>(o.hidden_size, o.layer_norm_eps))),
        dropout_(add_slot("dropout", std::make_shared<Dropout>(o.hidden_dropout_prob))) {}

  TensorTree forward(const TensorTree& batch) override {
    const at::Tensor& tokens = tokens_of(batch);
    const TensorTree* given = batch.find("token_type_ids");
    const at::Tensor types = given ? given->tensor().to(at::kLong) : at::zeros_like(tokens);
    const at::Tensor positions = at::arange(tokens.size(1), tokens.options());
    return dropout_(norm_(words_(tokens) + types_(types) + positions_(positions)));
  }

  const char* kind() const override { return "BertEmbeddings"; }
  Layer& table() const { return words_.layer(); }
  const Parameter& words() const { return *table().own_parameters().front(); }

 private:
  Slot& words_;
  Slot& positions_;
  Slot& types_;
  Slot& norm_;
  Slot& dropout_;
};

class Encoder final : public Layer {
 public:
  explicit Encoder(const BertOptions& o)
      : layer_(add_slot("layer", std::make_shared<BertLayers>(o.num_hidden_layers, block_options(o)))) {}
  TensorTree forward(const TensorTree& input) override { return layer_(input); }
  const char* kind() const override { return "BertEncoder"; }

 private:
  Slot& layer_;
};

// tanh of a projection of the first token's states.
class Pooler final : public Layer {
 public:
  explicit Pooler(const BertOptions& o)
      : dense_(add_slot("dense", normal_linear(o.hidden_size, o.hidden_size, o.initializer_range))),
        activation_(add_slot("activation", std::make_shared<Tanh>())) {}
  TensorTree forward(const TensorTree& input) override {
    return activation_(dense_(input.tensor().select(1, 0)));
  }
  const char* kind() const override { return "BertPooler"; }

 private:
  Slot& dense_;
  Slot& activation_;
};

// The part under "bert.": from a batch to hidden states, or to their summary.
class Trunk final : public Layer {
 public:
  Trunk(const BertOptions& o, const std::shared_ptr<Embeddings>& embeddings, bool has_pooler)
      : embeddings_(add_slot("embeddings", embeddings)),
        encoder_(add_slot("encoder", std::make_shared<Encoder>(o))),
        pooler_(has_pooler ? &add_slot("pooler", std::make_shared<Pooler>(o)) : nullptr) {}

  TensorTree forward(const TensorTree& batch) override {
    MaskedStates given{embeddings_(batch).tensor(), {}};
    if (const TensorTree* mask = batch.find("attention_mask"))
      given.mask = mask->tensor().ne(0).unsqueeze(1).unsqueeze(1);
    const TensorTree states = encoder_(given.tree());
    return pooler_ ? (*pooler_)(states) : states;
  }

  const char* kind() const override { return "BertModel"; }

 private:
  Slot& embeddings_;
  Slot& encoder_;
  Slot* pooler_;
};

// "cls.predictions.transform".
class Transform final : public Layer {
 public:
  explicit Transform(const BertOptions& o)
      : dense_(add_slot("dense", normal_linear(o.hidden_size, o.hidden_size, o.initializer_range))),
        act_(add_slot("transform_act_fn", make_activation(o.hidden_act))),
        norm_(add_slot("LayerNorm", std::make_shared<LayerNorm>(o.hidden_size, o.layer_norm_eps))) {}
  TensorTree forward(const TensorTree& input) override { return norm_(act_(dense_(input))); }
  const char* kind() const override { return "BertPredictionHeadTransform"; }

 private:
  Slot& dense_;
  Slot& act_;
  Slot& norm_;
};

// "cls.predictions": hidden states to scores; the weights are the token embeddings.
class Predictions final : public TiedOutput {
 public:
  Predictions(const BertOptions& o, std::shared_ptr<const Embeddings> embeddings)
      : bias_(add_parameter("bias", {o.vocab_size}, constant_init(0.0))),
        transform_(add_slot("transform", std::make_shared<Transform>(o))),
        embeddings_(std::move(embeddings)) {}
  TensorTree forward(const TensorTree& input) override {
    return at::linear(transform_(input).tensor(), (own_ ? *own_ : embeddings_->words()).tensor, bias_.tensor);
  }
  const char* kind() const override { return "BertLMPredictionHead"; }
  std::vector<Layer*> reads() const override {
    return own_ ? std::vector<Layer*>() : std::vector<Layer*>{&embeddings_->table()};
  }
  void untie() override {
    if (own_) return;
    const Parameter& table = embeddings_->words();
    own_ = &add_parameter("decoder.weight", table.tensor.sizes().vec(), table.init);
    own_->origin = table.origin;
    own_->trained = false;
  }

 private:
  Parameter& bias_;
  Slot& transform_;
  std::shared_ptr<const Embeddings> embeddings_;
  Parameter* own_ = nullptr;  // weights, once untied
};

class MaskedLmHead final : public Layer {
 public:
  MaskedLmHead(const BertOptions& o, const std::shared_ptr<const Embeddings>& embeddings)
      : predictions_(add_slot("predictions", std::make_shared<Predictions>(o, embeddings))) {}
  TensorTree forward(const TensorTree& input) override { return predictions_(input); }
  const char* kind() const override { return "BertOnlyMLMHead"; }

 private:
  Slot& predictions_;
};

}  // namespace

std::shared_ptr<Layer> bert_trunk(const BertOptions& options, bool has_pooler) {
  return std::make_shared<Trunk>(options, std::make_shared<Embeddings>(options), has_pooler);
}

template <class Base>
void Bert<Base>::count_parameters() {
  for (const auto& named : tutti::parameters(*this))
    parameters_ += static_cast<double>(named.parameter->tensor.numel());
}

template <class Base>
int64_t Bert<Base>::tokens(const Batch& batch) const {
  return tokens_of(batch).numel();
}

template <class Base>
double Bert<Base>::flops_per_batch(const Batch& batch) const {
  return flops_of(tokens_of(batch));
}

template <class Base>
double Bert<Base>::flops_of(const at::Tensor& tokens) const {
  const auto attention = static_cast<double>(options_.num_hidden_layers * options_.hidden_size);
  return static_cast<double>(tokens.numel()) *
         (6.0 * parameters_ + 12.0 * attention * static_cast<double>(tokens.size(1)));
}

template class Bert<Model>;
template class Bert<Classifier>;

BertForMaskedLm::BertForMaskedLm(const BertOptions& options) : Bert<Model>(options) {
  const auto embeddings = std::make_shared<Embeddings>(options);
  bert_ = &add_slot("bert", std::make_shared<Trunk>(options, embeddings, /*has_pooler=*/false));
  cls_ = &add_slot("cls", std::make_shared<MaskedLmHead>(options, embeddings));
  count_parameters();
}

TensorTree BertForMaskedLm::forward(const Batch& batch) { return (*cls_)((*bert_)(batch)); }

at::Tensor BertForMaskedLm::loss(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& scores = outputs.tensor();
  return index_cross_entropy(scores.reshape({-1, scores.size(-1)}), labels_of(batch).reshape(-1));
}

at::Tensor BertForMaskedLm::losses(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& scores = outputs.tensor();
  const at::Tensor& labels = labels_of(batch);
  const at::Tensor losses = index_cross_entropy(scores.transpose(1, 2), labels, LossReduction::kNone);
  return losses.sum(1) / labels.ne(kIgnoredTarget).sum(1).clamp_min(1);
}

double BertForMaskedLm::loss_weight(const Batch& batch) const {
  return labels_of(batch).ne(kIgnoredTarget).sum().item<double>();
}

void BertForMaskedLm::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  metric.update(outputs.tensor(), labels_of(batch));
}

// In training, LanguageCrossEntropy would repeat the loss.
std::vector<std::string> BertForMaskedLm::get_metrics(bool is_train) const {
  if (is_train) return {"MaskedAccuracy"};
  return {"LanguageCrossEntropy", "MaskedAccuracy"};
}

BertForSequenceClassification::BertForSequenceClassification(const BertOptions& options, int64_t num_labels,
                                                             double classifier_dropout)
    : Bert<Classifier>(options),
      num_labels_(num_labels),
      bert_(add_slot("bert", bert_trunk(options, /*has_pooler=*/true))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(classifier_dropout))),
      classifier_(
          add_slot("classifier", normal_linear(options.hidden_size, num_labels, options.initializer_range))) {
  count_parameters();
}

TensorTree BertForSequenceClassification::forward(const Batch& batch) {
  return classifier_(dropout_(bert_(batch)));
}

at::Tensor BertForSequenceClassification::loss(const Outputs& outputs, const Batch& batch) {
  return chosen_loss().mean(outputs.tensor(), wide_indices(labels_of(batch)));
}

at::Tensor BertForSequenceClassification::losses(const Outputs& outputs, const Batch& batch) {
  return chosen_loss().of_samples(outputs.tensor(), wide_indices(labels_of(batch)));
}

double BertForSequenceClassification::loss_weight(const Batch& batch) const {
  return chosen_loss().items(wide_indices(labels_of(batch)));
}

void BertForSequenceClassification::update_metric(const Batch& batch, const Outputs& outputs,
                                                  Metric& metric) {
  metric.update(outputs.tensor(), wide_indices(labels_of(batch)));
}

// Of classes Composer's.
std::vector<std::string> BertForSequenceClassification::get_metrics(bool is_train) const {
  const std::vector<std::string> loss_metrics = Classifier::get_metrics(is_train);
  if (loss_metrics.empty() || loss_metrics[0] != kAccuracy) return loss_metrics;
  std::vector<std::string> names = {kAccuracy};
  if (num_labels_ == 2) names.emplace_back("BinaryF1Score");
  return names;
}

namespace {

// The name of an array in transformers, or else in tutti.
std::string present(const SampleSpec& samples, const char* name, const char* other) {
  return samples.shapes.count(name) ? name : other;
}

// Requires tokens and, where there are any, "attention_mask" and "token_type_ids" of the same shape; returns
// the name of the tokens.
std::string bert_tokens(const Setting& section, const SampleSpec& samples) {
  const std::string tokens = present(samples, "input_ids", "input");
  token_sequence(section, samples, tokens);
  for (const char* array : {"attention_mask", "token_type_ids"})
    require_mask(section, samples, array, tokens);
  return tokens;
}

}  // namespace

void require_mask(const Setting& section, const SampleSpec& samples, const std::string& mask,
                  const std::string& tokens) {
  const Shape& shape = samples.shapes.at(tokens);
  if (samples.shapes.count(mask) && samples.shapes.at(mask) != shape)
    refuse(section, samples, mask, shape_text(shape) + ", as '" + tokens + "'");
}

void require_sizes(const Setting& section, const BertOptions& options) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "max_position_embeddings", "type_vocab_size"})
    positive(section.at(key));
  require_heads(section.at("num_attention_heads"), options.hidden_size, "hidden_size");
  if (options.pad_token_id < 0 || options.pad_token_id >= options.vocab_size)
    section.at("pad_token_id")
        .fail("expected a token below vocab_size, in [0, " + std::to_string(options.vocab_size) + ')');
}

ModelPtr BertMlmOptions::make(const Setting& section, const SampleSpec& samples) const {
  require_one_a_token(section, samples, present(samples, "labels", "target"), bert_tokens(section, samples));
  require_sizes(section, *this);
  require_vocabulary(section, samples);
  return std::make_shared<BertForMaskedLm>(*this);
}

ModelPtr BertClassificationOptions::make(const Setting& section, const SampleSpec& samples) const {
  SampleSpec known = samples;
  if (bert_tokens(section, samples) == "input") known.classes = 0;  // those of "input" are tokens
  if (!section.has("num_classes")) known.classes = std::max(known.classes, kFewestClasses);
  const std::string array = present(samples, "labels", "target");
  const auto dtype = samples.dtypes.find(array);
  const bool are_floats = dtype != samples.dtypes.end() && at::isFloatingType(dtype->second);
  if (!section.has("loss") && are_floats && !samples.shapes.at(array).empty())
    section.fail("expected '" + array +
                 "' as a class index (an integer) a sample; of several numbers, loss = " +
                 "\"bce_with_logits\" takes labels, \"mse\" values, \"cross_entropy\" probabilities");
  const TargetPlan targets = plan_targets_in(array, section, known);
  require_sizes(section, *this);
  auto model = std::make_shared<BertForSequenceClassification>(
      *this, targets.outputs, classifier_dropout.value_or(hidden_dropout_prob));
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
