#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/recorder.h"

namespace tutti {

// Bytes [begin, end) of a flat tensor that belong to one name.
struct DigestPart {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
};

// The parts as far as they lie in chunk `rank` of `world` equal ones of a flat tensor of `bytes`: what one
// owner hashes of what all ranks hold alike.
std::vector<DigestPart> parts_of_chunk(const std::vector<DigestPart>& parts, int64_t bytes, int world,
                                       int rank);

// Hashes one tensor for the journal, step after step. Of more than kWindow bytes it hashes a window, which
// moves on with every step, so that any byte is looked at every (bytes / kWindow) steps.
class WindowedDigest {
 public:
  static constexpr int64_t kWindow = int64_t{1} << 20;

  WindowedDigest(std::string key, std::vector<DigestPart> parts, Recorder& recorder);
  void take(int64_t step, const at::Tensor& flat);

 private:
  std::string key_;
  std::vector<DigestPart> parts_;
  std::vector<uint16_t> hashes_;
  Recorder& recorder_;
};

// The same for tensors that are others at every call (a batch), each a part by its name. Tensors that are not
// dense in memory are copied first.
class TensorsDigest {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  static constexpr int64_t kWhole = std::numeric_limits<int64_t>::max() / 2;

  // `window`: bytes hashed at most a call; kWhole: all of them.
  TensorsDigest(std::string key, Recorder& recorder, int64_t window = WindowedDigest::kWindow);
  void take(int64_t step, const Named& tensors);

 private:
  std::string key_;
  int64_t window_;
  std::vector<std::string> names_;
  Recorder& recorder_;
};

}  // namespace tutti
