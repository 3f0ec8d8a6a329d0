#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tutti {

// Runs updates written with ATen's operators over parts of tensors that fit a processor's cache, with scratch
// of the same size, in float32 (float64 if any tensor is). Tensors in 16 bits are converted part by part.
//
// A number's result is a function of the numbers at its position in each list alone, not of where a tensor
// begins and ends, nor of threads. So kernels use operators that round numbers behind the last whole vector
// as ATen's CPU kernels round vectors: arithmetic, square roots, lerp, addcmul and addcdiv, but not pow, exp
// or log.
//
// All memory is allocated in the constructor. Not thread-safe; calls the kernel from several threads.
class InParts {
 public:
  // Lists of equal length. Tensors at the same place have the same sizes and order in memory, without gaps.
  using Lists = std::vector<std::vector<at::Tensor>>;
  struct Part {
    std::vector<at::Tensor> lists;    // of each list, flat; the kernel's results go to the tensors
    std::vector<at::Tensor> scratch;  // of the same size
    size_t place = 0;                 // of the tensors in the lists
    int64_t begin = 0;                // of the part in the tensors, in numbers
    int64_t count = 0;                // of numbers
    int64_t columns = 1;              // whole rows of so many numbers, or a piece of a row
    // The counted part of a tensor: [rows, columns].
    at::Tensor rows(const at::Tensor& of) const;
  };
  using Kernel = std::function<void(const Part& part)>;

  // `lists` and `scratch`: their numbers. `tensors`: all of a list. `by_rows`: parts are whole rows (slices
  // of dim 0), or pieces of a row that its size decides; rows with gaps count as rows of one number. `where`:
  // the device of the runs, if not the device of `tensors`.
  InParts(size_t lists, size_t scratch, const std::vector<at::Tensor>& tensors, bool by_rows,
          std::optional<c10::Device> where);

  void run(const Lists& lists, const Kernel& kernel);

 private:
  struct Piece {
    size_t place;
    int64_t begin, count, columns;
  };
  void add_pieces(const at::Tensor& tensor, size_t place, std::vector<Piece>& pieces) const;
  void run_piece(size_t set, const Lists& lists, const Piece& piece, const Kernel& kernel) const;

  size_t scratch_count_;
  bool by_rows_;
  int64_t most_;                               // numbers of a part
  at::ScalarType dtype_ = at::kFloat;          // that is computed in
  std::vector<std::vector<at::Tensor>> sets_;  // of each thread: [most_], of scratch, then of lists
};

}  // namespace tutti
