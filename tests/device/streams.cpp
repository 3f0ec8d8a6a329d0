#include "tests/device/streams.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <utility>

#include "tests/device/graph.h"
#include "tests/device/state.h"
#include "tests/device/wait_places.h"

namespace tutti::test_device {

namespace {

thread_local int device_now = 0;
thread_local std::array<int, kDevices> streams_now{};  // by device: the stream's id there

int checked(c10::Device device) {
  const int index = device.has_index() ? device.index() : device_now;
  TORCH_CHECK(index >= 0 && index < kDevices, "there is no test device ", index);
  return index;
}

c10::Stream stream_at(int device, int id) {
  return c10::Stream(c10::Stream::UNSAFE, device_at(device), static_cast<c10::StreamId>(id));
}

struct Event {
  Clock clock;
  int queries = 0;  // answered with "not ready"
};

// True if the host knows `clock` to be over, or has asked more often than the latency of events.
bool query(const Clock& clock, int& queries) {
  State& s = state();
  Lock lock(s.mutex);
  if (!host_clock().covers(clock) && queries++ < s.event_latency) return false;
  if (!s.order.query(lock, clock)) return false;
  s.memory.open_pinned(host_clock());
  return true;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kType;

  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::Device getDevice() const override { return device_at(device_now); }
  c10::Device exchangeDevice(c10::Device device) const override {
    return device_at(std::exchange(device_now, checked(device)));
  }
  void setDevice(c10::Device device) const override { device_now = checked(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) device_now = device.index();
  }

  c10::Stream getStream(c10::Device device) const override {
    const int index = checked(device);
    return stream_at(index, streams_now[static_cast<std::size_t>(index)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_at(checked(device), 0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStreamFromGlobalPool(device, false);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    static std::array<std::atomic<int>, kDevices> next{};
    const int index = checked(device);
    return stream_at(index, 1 + next[static_cast<std::size_t>(index)]++ % (kStreamsOfADevice - 1));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const int index = checked(stream.device());
    int& id = streams_now[static_cast<std::size_t>(index)];
    return stream_at(index, std::exchange(id, static_cast<int>(stream.id())));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    refuse_within_graph("an event");
    if (!*event) *event = new Event;
    const Lock lock(state().mutex);
    *static_cast<Event*>(*event) = {state().order.mark(stream_number(stream))};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event || left_out("stream")) return;
    const Lock lock(state().mutex);
    state().order.make_wait(stream_number(stream), static_cast<Event*>(event)->clock);
  }
  bool queryEvent(void* event) const override {
    if (!event || left_out("query")) return true;
    return query(static_cast<Event*>(event)->clock, static_cast<Event*>(event)->queries);
  }
  void synchronizeEvent(void* event) const override {
    if (!event || left_out("host")) return;
    Lock lock(state().mutex);
    host_wait(lock, static_cast<Event*>(event)->clock, "event");
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }

  bool queryStream(const c10::Stream& stream) const override {
    Lock lock(state().mutex);
    const Clock all = state().order.mark(stream_number(stream));
    lock.unlock();
    thread_local int queries = 0;
    const bool ready = query(all, queries);
    if (ready) queries = 0;
    return ready;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Lock lock(state().mutex);
    host_wait(lock, state().order.mark(stream_number(stream)), "stream");
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    Lock lock(state().mutex);
    Clock all;
    for (int id = 0; id < kStreamsOfADevice; ++id)
      all.join(state().order.mark(stream_number(stream_at(checked(device_at(device)), id))));
    host_wait(lock, all, "device");
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

int current_device() { return device_now; }

int stream_number(const c10::Stream& stream) {
  return stream.device_index() * kStreamsOfADevice + static_cast<int>(stream.id());
}

int current_stream(int device) {
  return device * kStreamsOfADevice + streams_now[static_cast<std::size_t>(device)];
}

std::string stream_name(int stream) {
  return "stream " + std::to_string(stream % kStreamsOfADevice) + " of device " +
         std::to_string(device_of(stream));
}

}  // namespace tutti::test_device
