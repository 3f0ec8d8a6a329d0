#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::exported {

// The sizes of the first input of a program of torch.export (.pt2), -1 for free ones; empty if the file does
// not say them. Without libtorch.
std::vector<int64_t> input_sizes(const std::string& path);

}  // namespace tutti::exported
