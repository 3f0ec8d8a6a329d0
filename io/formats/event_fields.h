#pragma once

#include <cstdint>

namespace tutti {

// The format of event files. A record is the event's length (8 bytes), masked CRC-32C of that, the event,
// masked CRC-32C of the event (4 bytes each).
inline constexpr uint64_t kBeforeEvent = 12, kAfterEvent = 4;  // bytes
inline constexpr uint64_t kTimeBytes = 1 + sizeof(double);     // with which an event begins

// An event is a protobuf. A field of a protobuf is its number and wire type, then its bytes.
namespace proto {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Numbers of fields: Event (tensorflow/core/util/event.proto), Summary.Value and Summary.Image
// (framework/summary.proto), TensorProto (framework/tensor.proto).
inline constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
inline constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8, kMetadata = 9;
inline constexpr uint32_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
inline constexpr uint32_t kPluginData = 1, kPluginName = 1;
inline constexpr uint32_t kDtype = 1, kShape = 2, kStrings = 8, kDim = 2, kSize = 1;

}  // namespace proto
}  // namespace tutti
