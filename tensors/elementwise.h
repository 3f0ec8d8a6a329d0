#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tutti {

// True of tensors on CPUs. The tests' device computes by the CPU's kernels, too.
bool runs_cpu_kernels(const at::Tensor& tensor);

// Runs elementwise kernels in place so that the result for a number is a function of the numbers at its
// position in each list alone, not of where a tensor begins and ends, nor of threads. libtorch's CPU kernels
// (fused Adam, AdamW and SGD; add with a factor in 16 bits) round the numbers behind the last whole vector of
// a tensor in another way. So those numbers, and small tensors, are computed in a padded scratch and copied
// back.
//
// All memory is allocated in the constructor. Not thread-safe.
class Elementwise {
 public:
  // Lists of equal length. Tensors at the same place have the same size, dtype and order in memory, without
  // gaps, and are owned elsewhere, too.
  using Lists = std::vector<std::vector<at::Tensor>>;
  // Gets lists of other tensors, and for each tensor the place in the original lists that its numbers are
  // from: the first place, if from several. Called any number of times.
  using Kernel = std::function<void(const Lists& lists, const std::vector<size_t>& places)>;
  // True if the numbers of two places may be in one tensor: the kernel has the same scalars for both places.
  // Absent: always.
  using Alike = std::function<bool(size_t place, size_t other)>;

  static constexpr size_t kMostLists = 5;

  // `lists`: the most lists of a run. `tensors`: all of a list, also if a run gets some tensors only, or some
  // of 16 bits in float32. `where`: the device of the runs, if not the device of `tensors`.
  Elementwise(size_t lists, const std::vector<at::Tensor>& tensors, std::optional<c10::Device> where = {});

  void run(Lists lists, const Kernel& kernel, const Alike& alike = {});

 private:
  // Bytes [at, at + bytes) of each scratch have numbers of a place: bytes [begin, begin + bytes) of `from`, a
  // tensor of each list.
  struct Packed {
    size_t at, begin, bytes;
    std::array<at::Tensor, kMostLists> from;
  };
  // Whole vectors of each scratch, with the numbers of equal positions.
  struct Segment {
    size_t begin, end;  // in bytes
    at::ScalarType dtype;
    size_t first;  // of the places
    bool operator==(const Segment& other) const {
      return begin == other.begin && end == other.end && dtype == other.dtype;
    }
  };

  void run_halves(Lists lists, const Kernel& kernel, const Alike& alike);
  void pack(const Lists& lists, size_t place, const Alike& alike);
  const std::vector<at::Tensor>& tensors_of(const Segment& segment);
  void copy_back();

  size_t capacity_ = 0;              // bytes of each scratch
  std::vector<at::Tensor> scratch_;  // for each list: uint8
  std::vector<Packed> packed_;
  std::vector<Segment> segments_;
  std::vector<std::pair<Segment, std::vector<at::Tensor>>> made_;  // making views takes as long as a kernel
};

}  // namespace tutti
