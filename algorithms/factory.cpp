#include "algorithms/factory.h"

#include <map>

#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/surgery/alibi.h"
#include "algorithms/surgery/gated_linear_units.h"
#include "models/layers/bert_blocks.h"

namespace tutti {
namespace {

using AlgorithmPtr = std::shared_ptr<Algorithm>;
using AlgorithmMaker = AlgorithmPtr (*)(const Setting& section);

AlgorithmPtr gradient_clipping(const Setting& section) {
  static const std::map<std::string, ClippingType> types = {
      {"norm", ClippingType::kNorm}, {"value", ClippingType::kValue}, {"adaptive", ClippingType::kAdaptive}};
  return std::make_shared<GradientClipping>(types.at(section.at("clipping_type").text()),
                                            section.at("clipping_threshold").number());
}

AlgorithmPtr alibi(const Setting& section) {
  return std::make_shared<Alibi>(section.at("max_sequence_length").integer(),
                                 section.at("train_sequence_length_scaling"));
}

AlgorithmPtr gated_linear_units(const Setting& section) {
  return std::make_shared<GatedLinearUnits>(
      section.has("act_fn") ? make_bert_activation(section.at("act_fn").text()) : nullptr,
      section.at("gated_layer_bias").boolean(), section.at("non_gated_layer_bias").boolean());
}

const std::map<std::string, AlgorithmMaker>& algorithm_makers() {
  static const std::map<std::string, AlgorithmMaker> all = {
      {"alibi", alibi}, {"gated_linear_units", gated_linear_units}, {"gradient_clipping", gradient_clipping}};
  return all;
}

}  // namespace

AlgorithmPtr make_algorithm(const Setting& section) {
  return algorithm_makers().at(section.at("kind").text())(section);
}

}  // namespace tutti
