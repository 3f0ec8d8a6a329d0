#include "tests/device/state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "tests/device/graph.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchangeDevice(device); }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return c10::impl::getDeviceGuardImpl(kType)->exchangeDevice(device_at(device)).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }

  bool isPinnedPtr(const void* data) const override { return state().memory.pinned_arena.in_front(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  at::Device getDeviceFromPtr(void* data) const override {
    const Lock lock(state().mutex);
    const Block* const block = state().memory.block_of(data);
    TORCH_CHECK(block && block->device != kPinned, "this is no memory of a test device");
    return device_at(block->device);
  }

  // Generators draw as the CPU's, for the same bits, but each device has its own.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device < 0 ? current_device() : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr fresh = device_allocator().allocate(bytes);
    const std::size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) device_allocator().copy_data(fresh.get(), storage.data(), kept);
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

}  // namespace

State& state() {
  static auto& state = *new State;  // tensors may outlive static objects
  return state;
}

const at::Generator& default_generator(int device) {
  static const std::vector<at::Generator> all = [] {
    std::vector<at::Generator> made;
    for (int i = 0; i < kDevices; ++i) made.push_back(at::detail::createCPUGenerator());
    return made;
  }();
  return all.at(static_cast<std::size_t>(device));
}

void host_wait(Lock& lock, const Clock& clock, const std::string& cause) {
  refuse_within_graph("a wait of the host, " + cause + ",");
  state().order.host_wait(lock, clock, cause, current_stream(current_device()));
  state().memory.open_pinned(host_clock());
}

void install() {
  static const bool once = [] {
    state().memory.map();
    c10::register_privateuse1_backend("test");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::SetAllocator(kType, &device_allocator());
    redirect_cpu_allocator();
    set_autocast(AutocastPolicy::kCpu);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace tutti::test_device
