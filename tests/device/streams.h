#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <string>

#include "tests/device/order.h"

namespace tutti::test_device {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

inline c10::Device device_at(int index) { return {kType, static_cast<c10::DeviceIndex>(index)}; }

// The calling thread's device, and its stream on a device. Streams are numbered over all devices.
int current_device();
int current_stream(int device);

int stream_number(const c10::Stream& stream);
inline int device_of(int stream) { return stream / kStreamsOfADevice; }

// "stream 2 of device 0".
std::string stream_name(int stream);

}  // namespace tutti::test_device
