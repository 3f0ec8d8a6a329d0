#pragma once

#include <cstdint>

namespace tutti {

// The target that losses and metrics leave out, as PyTorch's.
inline constexpr int64_t kIgnoredTarget = -100;

}  // namespace tutti
