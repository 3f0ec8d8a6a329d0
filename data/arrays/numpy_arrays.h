#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/arrays/array_dataset.h"

namespace tutti {

// Arrays of an .npz archive, or of the .npy files in a folder: those of these names in batches, or all.
// `stored_as` has the names of those that are stored by another. Arrays are mapped, but for deflated ones.
// Throws UserError, MissingArrays.
std::vector<StoredArray> open_numpy(const std::string& path, const std::vector<std::string>& names,
                                    const std::map<std::string, std::string>& stored_as);

}  // namespace tutti
