#pragma once

#include <map>
#include <set>
#include <string>

#include "models/model.h"
#include "models/zoo/bert.h"
#include "tests/golden/golden_file.h"

namespace tutti {

// Names that repeat another tensor of a case's weights: "lm_head.weight" -> "transformer.wte.weight".
using TiedNames = std::map<std::string, std::string>;

// Copies the weights of a case into a model, by name. Expects (gtest) that both have the same names, but for
// tied ones, whose values must be those of the other.
void load_weights(const GoldenCase& c, Layer& model, const TiedNames& tied = {});

// transformers' BertForMaskedLM of a case's sizes, without dropout, and the names that it ties.
BertOptions bert_options(const GoldenCase& c);
const std::set<std::string>& bert_sizes();  // the parameters that bert_options reads, and the version
const TiedNames& tied_by_bert();

std::set<std::string> parameter_names(Layer& model);

// In evaluation mode.
at::Tensor evaluated(Model& model, const Batch& batch);

}  // namespace tutti
