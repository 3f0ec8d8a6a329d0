#include "tensors/device.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/AutogradState.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <utility>

#include "tensors/kernels/graph.h"

namespace tutti {
namespace {

c10::Stream current_stream(c10::Device where) {
  return c10::impl::VirtualGuardImpl(where.type()).getStream(where);
}

}  // namespace

Device Device::of(const Batch& batch) {
  const auto leaves = batch.leaves();
  return leaves.empty() ? Device() : Device{leaves.front().second.device()};
}

Batch Device::take(const Batch& batch) const {
  if (is_cpu()) return batch;
  return batch.map([this](const at::Tensor& leaf) { return take(leaf); });
}

void Device::use() const {
  thread_local std::optional<c10::Device> used;
  if (used == where) return;
  // Until then MKL computes with as many threads as the machine has cores, and rounds otherwise.
  if (!used) at::init_num_threads();
  used = where;
  if (is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(where.type());
  guard.setDevice(where);
  guard.exchangeStream(guard.getStreamFromGlobalPool(where));
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

void Device::settle() const noexcept try {
  if (!is_cpu()) at::accelerator::synchronizeDevice(where.index());
} catch (const std::exception&) {  // of a kernel, whose results nobody wants any more
}

StreamOrder StreamOrder::record(const Device& device) {
  StreamOrder order;
  if (device.is_cpu()) return order;
  auto event = std::make_shared<c10::Event>(device.where.type());
  event->record(current_stream(device.where));
  order.event_ = std::move(event);
  return order;
}

void StreamOrder::wait() const {
  if (event_) event_->block(current_stream(event_->device()));
}

bool StreamOrder::over() const { return !event_ || event_->query(); }

void StreamOrder::synchronize() const {
  if (event_) event_->synchronize();
}

at::Tensor staging_memory(at::IntArrayRef sizes, at::ScalarType dtype, const Device& device) {
  refuse_in_graph("numbers pass between the host and the device");
  return at::empty(sizes, at::TensorOptions(dtype).pinned_memory(!device.is_cpu()));
}

at::Tensor copy_to_device(const at::Tensor& tensor, c10::Device where) {
  if (!tensor.is_cpu() || where.is_cpu()) return tensor.to(where);
  const at::Tensor staged = staging_memory(tensor.sizes(), tensor.scalar_type(), {where}).copy_(tensor);
  return staged.to(where, /*non_blocking=*/true);
}

BatchCopy copy_to_device(const Batch& batch, const Device& device) {
  if (device.is_cpu()) return {batch, {}};
  const Batch on_device =
      batch.map([&device](const at::Tensor& leaf) { return copy_to_device(leaf, device.where); });
  return {on_device, StreamOrder::record(device)};
}

Batch arrived(const BatchCopy& copy) {
  if (!copy.copied) return copy.batch;
  copy.copied.wait();
  for (const auto& [name, leaf] : copy.batch.leaves())
    at::Tensor(leaf).record_stream(current_stream(leaf.device()));
  return copy.batch;
}

}  // namespace tutti
