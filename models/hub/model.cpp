#include "models/hub/model.h"

#include <memory>

#include "models/zoo/bert.h"
#include "models/zoo/bert_contrastive.h"
#include "models/zoo/diffusion_unet.h"
#include "models/zoo/gpt.h"
#include "models/zoo/llama.h"
#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

// The zoo's model of a section, on the meta device.
std::shared_ptr<Model> hub_model(const Setting& section, int64_t width) {
  const std::string& kind = section.at("kind").text();
  if (kind == "gpt") return std::make_shared<Gpt>(GptOptions::kind().read(section));
  if (kind == "bert_mlm") return std::make_shared<BertForMaskedLm>(BertMlmOptions::kind().read(section));
  if (kind == "llama") return std::make_shared<Llama>(LlamaOptions::kind().read(section));
  if (kind == "diffusion_unet") {
    auto options = DiffusionUnetOptions::kind().read(section);
    options.in_channels = width;
    return std::make_shared<DiffusionUnet>(options);
  }
  if (kind == "bert_contrastive")
    return std::make_shared<BertForContrast>(BertContrastiveOptions::kind().read(section));
  TUTTI_ASSERT(kind == "bert_classification", kind);
  const auto options = BertClassificationOptions::kind().read(section);
  return std::make_shared<BertForSequenceClassification>(options, width, 0.0);
}

NamedShapes shapes_of(Model& model) {
  NamedShapes shapes;
  for (const auto& named : parameters(model)) shapes[named.name] = named.parameter->tensor.sizes().vec();
  for (const auto& named : buffers(model))
    if (named.buffer->persistent) shapes[named.name] = named.buffer->tensor.sizes().vec();
  return shapes;
}

}  // namespace

int64_t hub_width(const NamedShapes& tensors) {
  for (const char* head : {"classifier.weight", "conv_out.weight"})
    if (const auto shape = tensors.find(head); shape != tensors.end()) return shape->second.at(0);
  return 0;
}

void require_hub_model(const Setting& key, const Setting& section, const NamedShapes& tensors) {
  const NamedShapes expected = shapes_of(*hub_model(section, hub_width(tensors)));
  for (const auto& [name, shape] : tensors) {
    const auto hubs = expected.find(name);
    if (hubs == expected.end()) key.fail("the hub's model has no tensor '" + name + "', the run's has");
    if (hubs->second != shape)
      key.fail("'" + name + "' is " + shape_text(shape) + ", that of the hub's model " +
               shape_text(hubs->second));
  }
  for (const auto& [name, shape] : expected)
    if (!tensors.contains(name)) key.fail("the run's model has no tensor '" + name + "', the hub's has");
}

}  // namespace tutti
