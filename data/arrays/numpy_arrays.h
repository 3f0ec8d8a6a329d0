#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/arrays/array_dataset.h"

namespace tutti {

// Arrays of an .npz archive, or of the .npy files in a folder: those of `names`, pairs of the name in batches
// and the one that is stored; all if it is empty. Arrays are mapped, but for deflated ones. Throws UserError,
// MissingArrays.
std::vector<StoredArray> open_numpy(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace tutti
