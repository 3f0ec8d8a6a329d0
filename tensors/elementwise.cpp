#include "tensors/elementwise.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

// Kernels divide their work between threads at multiples of 64 bytes, the widest vectors.
constexpr size_t kVectorBytes = 64;
constexpr size_t kMostScratchBytes = size_t{1} << 15;
constexpr size_t kCheapCopyBytes = 512;  // copying costs no more than a kernel's way to another tensor
constexpr size_t kMostMade = 32;

size_t padded(size_t bytes) { return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes; }

char* bytes_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.mutable_data_ptr()); }

// All bytes of a tensor without gaps.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return tensor.as_strided({tensor.numel()}, {1}).view(at::kByte);
}

void copy_bytes(const at::Tensor& to, size_t to_begin, const at::Tensor& from, size_t from_begin,
                size_t count) {
  if (to.is_cpu()) {
    std::memcpy(bytes_of(to) + to_begin, bytes_of(from) + from_begin, count);
    return;
  }
  const auto part = [count](const at::Tensor& tensor, size_t begin) {
    return as_bytes(tensor).narrow(0, static_cast<int64_t>(begin), static_cast<int64_t>(count));
  };
  part(to, to_begin).copy_(part(from, from_begin));
}

// The numbers behind the last whole vector, or all numbers of a small tensor.
size_t packed_bytes(const at::Tensor& tensor) {
  const size_t bytes = tensor.nbytes(), rest = bytes % kVectorBytes;
  if (rest == 0 || !runs_cpu_kernels(tensor)) return 0;
  return bytes <= kCheapCopyBytes ? bytes : rest;
}

// A kernel copies gradients that are not contiguous. Without the dispatcher, which takes as long as a kernel.
at::Tensor flat(at::Tensor tensor) {
  if (!runs_cpu_kernels(tensor) || tensor.is_contiguous()) return tensor;
  return at::native::as_strided_tensorimpl(tensor, {tensor.numel()}, {1}, tensor.storage_offset());
}

std::vector<size_t> all_places(size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

}  // namespace

bool runs_cpu_kernels(const at::Tensor& tensor) { return tensor.is_cpu() || tensor.is_privateuseone(); }

Elementwise::Elementwise(size_t lists, const std::vector<at::Tensor>& tensors,
                         std::optional<c10::Device> where) {
  TUTTI_ASSERT(lists <= kMostLists, "so many lists are not foreseen");
  for (const at::Tensor& tensor : tensors) {
    const size_t item = std::max<size_t>(tensor.element_size(), sizeof(float));
    capacity_ += std::min(kCheapCopyBytes, padded(item * tensor.numel()));
  }
  capacity_ = std::min(capacity_, kMostScratchBytes);
  at::TensorOptions options = tensors.empty() ? at::TensorOptions() : tensors.front().options();
  if (where) options = options.device(*where);
  for (size_t l = 0; l < lists; ++l)
    scratch_.push_back(at::zeros({static_cast<int64_t>(capacity_)}, options.dtype(at::kByte)));
}

void Elementwise::run(Lists lists, const Kernel& kernel, const Alike& alike) {
  const at::NoGradGuard no_grad;
  TUTTI_ASSERT(lists.size() <= scratch_.size(), "more lists than announced");
  size_t needed = 0;
  bool is_flat = true;
  for (const at::Tensor& tensor : lists[0]) {
    needed += padded(packed_bytes(tensor));
    is_flat = is_flat && tensor.is_contiguous();
  }
  if (needed == 0 && is_flat) return kernel(lists, all_places(lists[0].size()));
  if (needed > capacity_) return run_halves(std::move(lists), kernel, alike);
  packed_.clear();
  segments_.clear();
  std::vector<size_t> places;
  places.reserve(lists[0].size() + 1);
  for (size_t place = 0; place < lists[0].size(); ++place) {
    const size_t bytes = lists[0][place].nbytes(), packed = packed_bytes(lists[0][place]);
    if (packed > 0) pack(lists, place, alike);
    if (packed == bytes) continue;
    for (auto& list : lists)
      if (places.size() < place || !list[place].is_contiguous())
        list[places.size()] = flat(std::move(list[place]));
    places.push_back(place);
  }
  for (auto& list : lists) list.resize(places.size());
  for (const Segment& segment : segments_) {
    const auto& tensors = tensors_of(segment);
    for (size_t l = 0; l < lists.size(); ++l) lists[l].push_back(tensors[l]);
    places.push_back(segment.first);
  }
  if (!places.empty()) kernel(lists, places);
  copy_back();
}

void Elementwise::run_halves(Lists lists, const Kernel& kernel, const Alike& alike) {
  const size_t count = lists[0].size(), middle = count / 2;
  TUTTI_ASSERT(count > 1, "the scratch holds a tensor");
  for (const auto& [begin, end] : {std::pair(size_t{0}, middle), std::pair(middle, count)}) {
    Lists half;
    for (const auto& list : lists) half.emplace_back(list.begin() + begin, list.begin() + end);
    const auto shifted_kernel = [&](const Lists& some, std::vector<size_t> places) {
      for (size_t& place : places) place += begin;
      kernel(some, places);
    };
    const auto shifted = [&](size_t one, size_t other) { return alike(begin + one, begin + other); };
    run(std::move(half), shifted_kernel, alike ? Alike(shifted) : Alike());
  }
}

void Elementwise::pack(const Lists& lists, size_t place, const Alike& alike) {
  const at::ScalarType dtype = lists[0][place].scalar_type();
  const size_t used = packed_.empty() ? 0 : packed_.back().at + packed_.back().bytes;
  const bool joins = !segments_.empty() && segments_.back().dtype == dtype &&
                     (!alike || alike(segments_.back().first, place));
  if (!joins) segments_.push_back({padded(used), 0, dtype, place});
  const size_t bytes = packed_bytes(lists[0][place]), begin = lists[0][place].nbytes() - bytes;
  Packed& part = packed_.emplace_back(Packed{joins ? used : padded(used), begin, bytes, {}});
  segments_.back().end = padded(part.at + bytes);
  for (size_t l = 0; l < lists.size(); ++l) {
    part.from[l] = lists[l][place];
    copy_bytes(scratch_[l], part.at, part.from[l], part.begin, bytes);
  }
}

const std::vector<at::Tensor>& Elementwise::tensors_of(const Segment& segment) {
  const auto known = std::ranges::find(made_, segment, [](const auto& made) { return made.first; });
  if (known != made_.end()) return known->second;
  if (made_.size() == kMostMade) made_.clear();
  std::vector<at::Tensor>& tensors = made_.emplace_back(segment, std::vector<at::Tensor>()).second;
  const auto begin = static_cast<int64_t>(segment.begin), end = static_cast<int64_t>(segment.end);
  for (const at::Tensor& scratch : scratch_)
    tensors.push_back(scratch.slice(0, begin, end).view(segment.dtype));
  return tensors;
}

// Numbers behind the last whole vector of larger tensors have been rounded otherwise, and are overwritten.
void Elementwise::copy_back() {
  for (size_t l = 0; l < scratch_.size(); ++l)
    for (const Packed& part : packed_)
      if (part.from[l].defined()) copy_bytes(part.from[l], part.begin, scratch_[l], part.at, part.bytes);
  packed_.clear();
}

}  // namespace tutti
