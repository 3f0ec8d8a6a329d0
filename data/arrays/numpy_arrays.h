#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/arrays/array_dataset.h"

namespace tutti {

// Arrays of an .npz archive, or of the .npy files in a folder: the arrays of `names`, pairs of the name in
// batches and the stored name; empty: all arrays. Arrays are mapped, except deflated arrays. Throws
// UserError, WrongKey.
std::vector<StoredArray> open_numpy(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace tutti
