#pragma once

#include <ATen/core/Tensor.h>

namespace tutti::test_device {

// aten::_copy_from: copies between a device and the host, or on devices. A copy is asynchronous if
// `non_blocking` and the host's side is pinned; one from other memory of the host reads it before returning.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking);

}  // namespace tutti::test_device
