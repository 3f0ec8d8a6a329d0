#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/recorder.h"
#include "tensors/device.h"

namespace tutti {

// How digests are computed, for journals: digests of different kinds cannot be compared.
inline constexpr const char* kDigestKind = "sums";

// A named part of a flat tensor: bytes [begin, end).
struct DigestPart {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
};

// Intersects `parts` with chunk `rank` of `world` equal chunks of a flat tensor of `bytes`. Each rank hashes
// its chunk of a tensor that is the same on all ranks.
std::vector<DigestPart> parts_of_chunk(const std::vector<DigestPart>& parts, int64_t bytes, int world,
                                       int rank);

// Records a digest of a flat tensor in the journal, every step. For a tensor larger than kWindow bytes, the
// digest covers a window that moves with the step, so that each byte has its turn every (bytes / kWindow)
// steps. The same on all devices, whose kernels compute the digest where the tensor is
// (tensors/kernels/digest_sums.h); the host gets 16 bytes for each part.
class WindowedDigest {
 public:
  static constexpr int64_t kWindow = int64_t{1} << 20;

  WindowedDigest(std::string key, std::vector<DigestPart> parts, Recorder& recorder);
  // Of a tensor on a device, this launches kernels and a copy on the thread's current stream, and `finish`
  // records. Call `finish` before the next step.
  void record(int64_t step, const at::Tensor& flat);
  // Waits for that copy.
  void finish();

 private:
  struct Copy {
    int64_t step;
    StreamOrder done;
  };

  std::string key_;
  std::vector<DigestPart> parts_;
  std::vector<uint16_t> digests_;
  Recorder& recorder_;
  at::Tensor staging_;  // for a device's sums
  std::optional<Copy> copy_;
};

// The same for named tensors that differ at every call (a batch); each tensor is a part. Tensors that are not
// dense in memory are copied first. Of a device's tensors the host waits once.
class TensorsDigest {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  static constexpr int64_t kWhole = std::numeric_limits<int64_t>::max() / 2;

  // `window`: the most bytes looked at in a call; kWhole: all.
  TensorsDigest(std::string key, Recorder& recorder, int64_t window = WindowedDigest::kWindow);
  void record(int64_t step, const Named& tensors);

 private:
  std::string key_;
  int64_t window_;
  std::vector<std::string> names_;
  Recorder& recorder_;
};

}  // namespace tutti
