#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/exported/archive.h"
#include "models/exported/modules.h"
#include "models/layers/layer.h"

namespace tutti::exported {

// Initial values of a tensor: those of the file, by the tensor's name there.
Init init_from(std::shared_ptr<const Archive> archive, std::string name);

// A module that is one call of torch's (a convolution, linear layer, norm, max pool, dropout) as tutti's own
// layer of that kind, which surgery finds. Null for all others: modules whose weights are not all that the
// call uses, or not float32, or tied to another's. `inputs`: the values that the module needs. `always`:
// dropout drops in training though it was exported in evaluation mode.
std::shared_ptr<Layer> make_leaf(const Module& module, const std::vector<std::string>& inputs,
                                 const Program& program, const std::shared_ptr<const Archive>& archive,
                                 bool always);

}  // namespace tutti::exported
