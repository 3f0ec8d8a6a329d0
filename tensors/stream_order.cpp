#include "tensors/stream_order.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tutti {
namespace {

c10::Stream current_stream(c10::Device where) {
  return c10::impl::VirtualGuardImpl(where.type()).getStream(where);
}

}  // namespace

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

}  // namespace tutti
