#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// No element is an infinity or NaN. Reads all of it once.
bool all_finite(const at::Tensor& tensor);
// The same of numbers that follow one another in memory; what is not a floating number always is.
bool all_finite(at::ScalarType dtype, const void* data, int64_t count);

// The same of a parameter's gradient [out, in, ...], without reading all of a large one, which would cost a
// small batch some percent of its step: of more than kReadWhole elements it looks at the first row and the
// first column. An activation or a gradient that is not finite spreads over whole rows, columns or both;
// missed is only a product of finite ones that overflows in single places, which in 16 bits is common.
bool gradient_is_finite(const at::Tensor& gradient);

inline constexpr int64_t kReadWhole = int64_t{1} << 18;

}  // namespace tutti
