#include "tensors/device.h"

#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tutti {

Batch Device::take(const Batch& batch) const {
  if (is_cpu()) return batch;
  return batch.map([this](const at::Tensor& leaf) { return take(leaf); });
}

void Device::use() const {
  if (!is_cpu()) c10::impl::VirtualGuardImpl(where.type()).setDevice(where);
}

void Device::use_with_backward() const {
  use();
  if (!is_cpu()) c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace tutti
