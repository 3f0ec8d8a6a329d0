#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/device/test_device.h"

namespace tutti::test_device {

inline c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::kPrivateUse1); }
inline c10::Stream side_stream(int index = 0) {
  return guard().getStreamFromGlobalPool(device(index), false);
}
inline at::TensorOptions floats(int index = 0) { return at::TensorOptions(device(index)).dtype(at::kFloat); }

template <class Work>
auto on(c10::Stream stream, Work work) {
  const c10::StreamGuard current(stream);
  return work();
}

inline c10::Event event_of(c10::Stream stream) {
  c10::Event event(c10::kPrivateUse1);
  event.record(stream);
  return event;
}

template <class Work>
void on_a_thread(Work work) {
  std::thread(work).join();
}

// A test in eager or late mode that leaves no finding unseen.
class DeviceTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    install();
    set_mode(GetParam());
    guard().synchronizeDevice(0);
    take_findings();
    reset_counters();
  }
  void TearDown() override {
    EXPECT_THAT(take_findings(), testing::IsEmpty());
    set_event_latency(0);
    set_mode(Mode::kEager);
  }
  static bool is_late() { return GetParam() == Mode::kLate; }
};

inline std::string mode_name(const testing::TestParamInfo<Mode>& info) {
  return info.param == Mode::kLate ? "Late" : "Eager";
}

}  // namespace tutti::test_device

// Instantiates a suite of DeviceTest in both modes.
#define TUTTI_IN_BOTH_MODES(suite)                                                \
  INSTANTIATE_TEST_SUITE_P(In, suite, testing::Values(Mode::kEager, Mode::kLate), \
                           tutti::test_device::mode_name)
