#pragma once

#include <string>
#include <vector>

#include "tests/golden/golden_file.h"

namespace tutti {

// Whose behaviour a recipe asks for where tutti and Composer differ.
enum class Manner { kComposers, kTuttis };

// The recipe of a case of trainer.h5, whatever its parameters: what the catalogs say of a key says how it is
// written. Data are the groups "train" and "eval" of an HDF5 file; every batch leaves a checkpoint. Expects
// (gtest) that the case has nothing that no recipe can say.
std::string recipe_text(const GoldenCase& c, const std::string& data, const std::string& weights,
                        Manner manner);

// "Flatten(start_dim=1, end_dim=-1)", ...: the layers of what torch prints of an nn.Sequential.
std::vector<std::string> layer_texts(const std::string& arch);

// Classes that the model of the case distinguishes.
int64_t classes_of(const GoldenCase& c);

}  // namespace tutti
