#include "training/optimizers/in_parts.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "tensors/elementwise.h"

namespace tutti {
namespace {

constexpr int64_t kCachedPart = 8192;              // numbers: five lists and scratch fit 256 KiB
constexpr int64_t kDevicePart = int64_t{1} << 22;  // kernels of devices want more

// Without the dispatcher, which takes as long as a kernel.
at::Tensor flat_part(const at::Tensor& tensor, int64_t begin, int64_t count) {
  return at::native::as_strided_tensorimpl(tensor, {count}, {1}, tensor.storage_offset() + begin);
}

void copy_flat(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_cpu() && from.is_cpu() && to.scalar_type() == from.scalar_type())
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  else
    at::Tensor(to).copy_(from);
}

// Numbers of a row that lies without gaps; 1 if rows do not.
int64_t columns_of(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.size(0) == 0) return 1;
  const int64_t columns = tensor.numel() / tensor.size(0);
  return tensor.stride(0) >= columns ? columns : 1;
}

}  // namespace

at::Tensor InParts::Part::rows(const at::Tensor& of) const {
  return at::native::as_strided_tensorimpl(of, {count / columns, columns}, {columns, 1}, of.storage_offset());
}

InParts::InParts(size_t lists, size_t scratch, const std::vector<at::Tensor>& tensors, bool by_rows,
                 std::optional<c10::Device> where)
    : scratch_count_(scratch), by_rows_(by_rows) {
  at::TensorOptions options = tensors.empty() ? at::TensorOptions() : tensors.front().options();
  if (where) options = options.device(*where);
  const bool on_cpu = runs_cpu_kernels(at::empty({0}, options));
  int64_t largest = 0;
  bool narrow = false;
  for (const at::Tensor& tensor : tensors) {
    largest = std::max(largest, tensor.numel());
    if (tensor.scalar_type() == at::kDouble) dtype_ = at::kDouble;
    narrow = narrow || tensor.scalar_type() != tensors.front().scalar_type() || tensor.element_size() < 4;
  }
  most_ = std::min(on_cpu ? kCachedPart : kDevicePart, largest);
  const size_t count = scratch + (narrow ? lists : 0);
  sets_.resize(options.device().is_cpu() ? std::max(1, at::get_num_threads()) : 1);
  for (auto& set : sets_)
    for (size_t s = 0; s < count; ++s) set.push_back(at::zeros({most_}, options.dtype(dtype_)));
}

void InParts::add_pieces(const at::Tensor& tensor, size_t place, std::vector<Piece>& pieces) const {
  const int64_t columns = by_rows_ ? columns_of(tensor) : 1;
  if (columns > most_) {
    for (int64_t row = 0; row < tensor.numel(); row += columns)
      for (int64_t begin = 0; begin < columns; begin += most_) {
        const int64_t count = std::min(most_, columns - begin);
        pieces.push_back({place, row + begin, count, count});
      }
    return;
  }
  const int64_t each = most_ / std::max<int64_t>(1, columns) * columns;
  for (int64_t begin = 0; begin < tensor.numel(); begin += each)
    pieces.push_back({place, begin, std::min(each, tensor.numel() - begin), columns});
}

void InParts::run(const Lists& lists, const Kernel& kernel) {
  std::vector<Piece> pieces;
  for (size_t place = 0; place < lists.front().size(); ++place)
    add_pieces(lists.front()[place], place, pieces);
  const auto sets = static_cast<int64_t>(std::min(sets_.size(), pieces.size()));
  at::parallel_for(0, sets, 1, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    for (int64_t set = begin; set < end; ++set)
      for (size_t p = set; p < pieces.size(); p += sets) run_piece(set, lists, pieces[p], kernel);
  });
}

void InParts::run_piece(size_t set, const Lists& lists, const Piece& piece, const Kernel& kernel) const {
  const std::vector<at::Tensor>& own = sets_[set];
  Part part{{}, {}, piece.place, piece.begin, piece.count, piece.columns};
  for (size_t s = 0; s < scratch_count_; ++s) part.scratch.push_back(flat_part(own[s], 0, piece.count));
  for (size_t l = 0; l < lists.size(); ++l) {
    const at::Tensor& tensor = lists[l][piece.place];
    const at::Tensor numbers = flat_part(tensor, piece.begin, piece.count);
    const bool in_place = tensor.scalar_type() == dtype_;
    part.lists.push_back(in_place ? numbers : flat_part(own[scratch_count_ + l], 0, piece.count));
    if (!in_place) copy_flat(part.lists.back(), numbers);
  }
  kernel(part);
  for (size_t l = 0; l < lists.size(); ++l) {
    const at::Tensor& tensor = lists[l][piece.place];
    if (tensor.scalar_type() == dtype_) continue;
    copy_flat(flat_part(tensor, piece.begin, piece.count), part.lists[l]);
  }
}

}  // namespace tutti
