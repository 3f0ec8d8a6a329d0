#include "models/zoo/mlp.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "models/layers/activation.h"
#include "models/layers/linear.h"
#include "models/zoo/layer_text.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"
#include "runtime/error.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

std::string layer_prefix(std::size_t index) { return "layer " + std::to_string(index) + ": "; }

std::shared_ptr<Layer> layer_at(std::size_t index, const std::string& text) try {
  return make_layer(text);
} catch (const UserError& error) {
  throw UserError(layer_prefix(index) + error.what());
}

// torch's image layers also accept a single image without batch dimension: rejected here.
at::Tensor run_layer(const Slot& slot, std::size_t index, const at::Tensor& x) try {
  const std::string kind = slot.layer().kind();
  if ((kind == "Conv2d" || kind == "MaxPool2d") && x.dim() != 4)
    throw UserError("expected [channels, height, width]");
  if (kind == "Conv3d" && x.dim() != 5) throw UserError("expected [channels, depth, height, width]");
  if (kind == "Conv1d" && x.dim() != 3) throw UserError("expected [channels, length]");
  return slot.layer().forward(x).tensor();
} catch (const std::exception& error) {
  throw_run_error(error, layer_prefix(index) + slot.layer().kind() + " does not accept " +
                             shape_text(x.sizes().slice(1)) + " a sample: ");
}

}  // namespace

Mlp::Mlp(const MlpOptions& options) {
  const auto append = [this](std::shared_ptr<Layer> layer) {
    TUTTI_ASSERT(layer, "unknown activation");
    add_slot(std::to_string(slots().size()), std::move(layer));
  };
  int64_t width = options.in_features;
  for (const int64_t next : options.hidden) {
    append(std::make_shared<Linear>(width, next));
    append(make_activation(options.activation));
    width = next;
  }
  append(std::make_shared<Linear>(width, options.num_classes));
}

TensorTree Mlp::forward(const Batch& batch) {
  at::Tensor x = batch["input"];
  if (x.dim() != 2) x = x.flatten(1);
  for (const auto& slot : slots()) x = (*slot)(x);
  return x;
}

SequentialNet::SequentialNet(const std::vector<std::string>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) add_slot(std::to_string(i), layer_at(i, layers[i]));
}

TensorTree SequentialNet::forward(const Batch& batch) {
  TensorTree x = batch["input"];
  for (const auto& slot : slots()) x = (*slot)(x);
  return x;
}

Shape SequentialNet::output_shape(const std::vector<std::string>& layers, const Shape& sample,
                                  at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  SequentialNet net(layers);
  if (parameters(net).empty()) throw UserError("there is nothing to train: no layer has parameters");
  const auto allocate = [](at::Tensor& tensor) { tensor = at::empty(tensor.sizes(), tensor.scalar_type()); };
  for (const auto& named : parameters(net)) allocate(named.parameter->tensor);
  for (const auto& named : buffers(net)) allocate(named.buffer->tensor);
  const EvaluationMode evaluating(net);
  Shape sizes{1};
  sizes.insert(sizes.end(), sample.begin(), sample.end());
  at::Tensor x = at::zeros(sizes, dtype);
  for (std::size_t i = 0; i < layers.size(); ++i) x = run_layer(*net.slots()[i], i, x);
  return x.sizes().slice(1).vec();
}

ModelPtr MlpOptions::make(const Setting& section, const SampleSpec& samples) const {
  const int64_t values = value_count(section, value_input(section, samples));
  MlpOptions options = *this;
  options.in_features = agreed_size(section, "in_features", values, "values a sample");
  const TargetPlan targets = plan_targets(section, samples);
  options.num_classes = targets.outputs;
  for (const int64_t width : hidden)
    if (width < 1) section.at("hidden").fail("expected widths >= 1");
  auto model = std::make_shared<Mlp>(options);
  model->set_labels(targets.has_labels);
  return model;
}

ModelPtr SequentialOptions::make(const Setting& section, const SampleSpec& samples) const {
  const bool tokens = !layers.empty() && layers.front().find("Embedding(") != std::string::npos;
  const Shape& sample = tokens ? token_sequence(section, samples, "input") : value_input(section, samples);
  const Setting& key = section.at("layers");
  std::shared_ptr<SequentialNet> net;
  Shape outputs;
  try {
    net = std::make_shared<SequentialNet>(layers);
    outputs = SequentialNet::output_shape(layers, sample, tokens ? at::kLong : at::kFloat);
  } catch (const std::exception& error) {
    key.fail(run_error(error));
  }
  net->set_labels(plan_targets(section, samples, outputs).has_labels);
  return net;
}

}  // namespace tutti
