#include "models/zoo/bert_contrastive.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "models/losses.h"
#include "models/step_rows.h"
#include "models/zoo/sample_checks.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

constexpr double kLeast = 1e-12;  // torch.nn.functional.normalize

// The names of a text's tokens in a batch, and of their mask.
std::string mask_name(const std::string& tokens) {
  if (tokens == "positive_ids") return "positive_attention_mask";
  if (tokens == "negative_ids") return "negative_attention_mask";
  return "attention_mask";
}

at::Tensor longer(const at::Tensor& tokens, int64_t length, int64_t filling) {
  return at::constant_pad_nd(tokens, {0, length - tokens.size(1)}, filling);
}

// "input_ids" [N texts, T], the texts of a sample one behind the other, and "attention_mask", if a text has
// padding.
Batch stacked(const Batch& batch, const std::vector<std::string>& texts, int64_t filling) {
  int64_t length = 0;
  bool padded = false;
  for (const auto& name : texts) {
    padded = padded || batch.find(mask_name(name)) || (length > 0 && length != batch[name].size(1));
    length = std::max(length, batch[name].size(1));
  }
  std::vector<at::Tensor> tokens, masks;
  for (const auto& name : texts) {
    tokens.push_back(longer(batch[name], length, filling));
    if (!padded) continue;
    const TensorTree* mask = batch.find(mask_name(name));
    masks.push_back(longer(mask ? mask->tensor().to(at::kLong) : at::ones_like(batch[name]), length, 0));
  }
  Batch all = TensorTree::Children{{"input_ids", at::stack(tokens, 1).flatten(0, 1)}};
  if (padded) all.set("attention_mask", at::stack(masks, 1).flatten(0, 1));
  return all;
}

at::Tensor mean_state(const at::Tensor& states, const TensorTree* mask) {
  if (!mask) return states.mean(1);
  const at::Tensor counted = mask->tensor().ne(0).to(states.scalar_type()).unsqueeze(-1);
  return (states * counted).sum(1) / counted.sum(1).clamp_min(kLeast);
}

}  // namespace

BertForContrast::BertForContrast(const BertContrastiveOptions& options)
    : Bert<Model>(options),
      pooling_(options.pooling),
      temperature_(options.temperature),
      symmetric_(options.symmetric),
      simcse_(options.simcse),
      bert_(add_slot("bert", bert_trunk(options, /*has_pooler=*/false))) {
  count_parameters();
}

// The tokens of a sample's texts, by their names.
std::vector<std::string> BertForContrast::texts_of(const Batch& batch) const {
  std::vector<std::string> texts = {batch.find("input_ids") ? "input_ids" : "input"};
  for (const char* other : {"positive_ids", "negative_ids"})
    if (batch.find(other)) texts.emplace_back(other);
  if (simcse_ && context().training) texts.push_back(texts[0]);
  return texts;
}

// All texts in one pass: the units of a sharded model are called once.
TensorTree BertForContrast::forward(const Batch& batch) {
  const auto texts = texts_of(batch);
  const auto count = std::ssize(texts);
  const Batch all = stacked(batch, texts, options().pad_token_id);
  ForwardContext row_context = context();
  row_context.rows_of_sample = count;
  const ContextScope scope(*this, row_context);
  const at::Tensor states = bert_(all).tensor();
  const AutocastScope off(std::nullopt, Device{states.device()});
  const at::Tensor wide = states.to(at::kFloat);
  const at::Tensor pooled =
      pooling_ == BertPooling::kMean ? mean_state(wide, all.find("attention_mask")) : wide.select(1, 0);
  const at::Tensor embeddings = pooled / pooled.norm(2, -1, /*keepdim=*/true).clamp_min(kLeast);
  return count == 1 ? embeddings : embeddings.unflatten(0, {-1, count});
}

// Of each text of a sample: [N, hidden_size].
std::vector<at::Tensor> BertForContrast::embeddings_of(const at::Tensor& rows) const {
  return rows.unflatten(1, {-1, options().hidden_size}).unbind(1);
}

// Of the samples `mine`: [N, positives and negatives of `rows`]. A single text is its own positive.
at::Tensor BertForContrast::scores_of(const at::Tensor& mine, const at::Tensor& rows) const {
  const AutocastScope off(std::nullopt, Device{rows.device()});
  auto others = embeddings_of(rows);
  if (others.size() > 1) others.erase(others.begin());
  return at::matmul(embeddings_of(mine)[0], at::cat(others).t()) / temperature_;
}

at::Tensor BertForContrast::loss(const Outputs& outputs, const Batch& batch) {
  const AutocastScope off(std::nullopt, Device{outputs.tensor().device()});
  const at::Tensor all = rows_of_step(batch, rows(outputs)), scores = scores_of(all, all);
  const at::Tensor places = places_in_step({}, all), losses = index_cross_entropy(scores, places);
  if (!symmetric_) return losses;
  return (losses + index_cross_entropy(scores.narrow(1, 0, scores.size(0)).t(), places)) / 2;
}

std::vector<std::string> BertForContrast::get_metrics(bool is_train) const {
  if (is_train) return {};
  return {"MulticlassAccuracy"};
}

void BertForContrast::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  const at::Tensor mine = rows(outputs);
  metric.update(scores_of(mine, rows_of_step(batch, mine)), places_in_step(batch, mine));
}

int64_t BertForContrast::tokens(const Batch& batch) const {
  int64_t count = 0;
  for (const auto& name : texts_of(batch)) count += batch[name].numel();
  return count;
}

double BertForContrast::flops_per_batch(const Batch& batch) const {
  double flops = 0;
  for (const auto& name : texts_of(batch)) flops += flops_of(batch[name]);
  return flops;
}

ModelPtr BertContrastiveOptions::make(const Setting& section, const SampleSpec& samples) const {
  std::vector<std::string> texts = {samples.shapes.count("input_ids") ? "input_ids" : "input"};
  if (simcse && samples.shapes.count("positive_ids"))
    section.at("simcse").fail("the data has an array 'positive_ids'; each text would be its own positive");
  if (!simcse) texts.emplace_back("positive_ids");
  if (samples.shapes.count("negative_ids")) texts.emplace_back("negative_ids");
  for (const auto& name : texts) {
    token_sequence(section, samples, name);
    require_mask(section, samples, mask_name(name), name);
  }
  require_sizes(section, *this);
  require_vocabulary(section, samples);
  return std::make_shared<BertForContrast>(*this);
}

}  // namespace tutti
