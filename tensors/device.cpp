#include "tensors/device.h"

#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tutti {

Batch Device::take(const Batch& batch) const {
  if (is_cpu()) return batch;
  return batch.map([this](const at::Tensor& leaf) { return take(leaf); });
}

void Device::use() const {
  thread_local c10::Device used(c10::kCPU);
  if (used == where) return;
  used = where;
  const c10::impl::VirtualGuardImpl guard(where.type());
  guard.setDevice(where);
  guard.exchangeStream(guard.getStreamFromGlobalPool(where));
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace tutti
