#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::exported {

// The sizes of the first input of a program of torch.export (.pt2), -1 for free sizes; empty if the file has
// no sizes. Without libtorch.
std::vector<int64_t> input_sizes(const std::string& path);

}  // namespace tutti::exported
