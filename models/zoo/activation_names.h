#pragma once

#include <string>
#include <vector>

namespace tutti {

// The activations that options name, which make_activation (models/layers/activation.h) makes. Free of
// libtorch.
inline std::vector<std::string> activation_names() {
  return {"relu", "gelu", "gelu_tanh", "gelu_new", "silu", "swish", "tanh"};
}

}  // namespace tutti
