#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/zoo/bert.h"
#include "tests/golden/golden_file.h"

namespace tutti {

// Names that repeat another tensor of a case's weights: "lm_head.weight" -> "transformer.wte.weight".
using TiedNames = std::map<std::string, std::string>;

// Copies the weights of a case into a model, by name. Expects (gtest) that both have the same names, but for
// tied ones, whose values must be those of the other, and buffers, which the case may leave out.
void load_weights(const GoldenCase& c, Layer& model, const TiedNames& tied = {});

// The layers of what torch prints of an nn.Sequential.
std::shared_ptr<Layer> sequential_of(const std::string& arch);

// Expects (gtest) the outputs of "in/x", and for the cotangent "in/grad_y" the gradients "out/grad_x" and
// "out/grad/NAME" of all named parameters.
void expect_gradients(const GoldenCase& c, Layer& model, const std::vector<NamedParameter>& named,
                      const std::string& outputs = "out/y");

// A list of indices, which may be empty; and those of the layers of a kind in a Sequential.
std::vector<int64_t> indices_of(const GoldenCase& c, const char* attribute);
std::vector<int64_t> places_of(const Layer& sequential, const std::string& kind);

bool flag(const GoldenCase& c, const char* attribute);  // false if it is missing

// transformers' BertForMaskedLM of a case's sizes, without dropout, and the names that it ties.
BertOptions bert_options(const GoldenCase& c);
const std::set<std::string>& bert_sizes();  // the parameters that bert_options reads, and the version
const TiedNames& tied_by_bert();

std::set<std::string> parameter_names(Layer& model);

// In evaluation mode.
at::Tensor evaluated(Model& model, const Batch& batch);

}  // namespace tutti
