#include "io/checkpoint/tensor_source.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "io/formats/dtypes.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;  // to hash at once: they fit the processor's cache

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

std::size_t bytes_of(const TensorSource::Entry& entry) {
  return static_cast<std::size_t>(c10::multiply_integers(entry.shape)) * c10::elementSize(entry.dtype);
}

// Hashes a tensor's numbers in parts of the buffer's size.
uint64_t hash_of(const TensorSource& tensors, const std::string& name, std::span<std::byte> buffer) {
  const TensorSource::Entry& entry = tensors.at(name);
  const int64_t numbers = c10::multiply_integers(entry.shape), item = c10::elementSize(entry.dtype);
  const int64_t fitting = static_cast<int64_t>(buffer.size()) / item;
  StreamedHash hash;
  for (int64_t first = 0; first < numbers; first += fitting) {
    const auto part = buffer.first(std::min(fitting, numbers - first) * item);
    tensors.read_numbers(name, first, part);
    hash.add(part);
  }
  return hash.value();
}

}  // namespace

const TensorSource::Entry& TensorSource::at(const std::string& name) const {
  const auto entry = entries_.find(name);
  TUTTI_ASSERT(entry != entries_.end(), "there is no tensor " + name);
  return entry->second;
}

void TensorSource::read(const std::string& name, const TensorRegion& region, const at::Tensor& to) const {
  TUTTI_ASSERT(region.extent.size() == at(name).shape.size() && to.sizes() == at::IntArrayRef(region.extent),
               name + ": the region has another shape");
  for (std::size_t d = 0; d < region.extent.size(); ++d)
    TUTTI_ASSERT(region.offset.at(d) >= 0 && region.offset[d] + region.extent[d] <= at(name).shape[d],
                 name + ": the region is beyond the tensor");
  const at::NoGradGuard no_grad;
  read_from(name, 0, 0, region, to.detach());
  to.unsafeGetTensorImpl()->bump_version();
}

// Reads `to` of the dimensions from `dim` on, of which the first number in the file is `first`.
void TensorSource::read_from(const std::string& name, std::size_t dim, int64_t first,
                             const TensorRegion& region, const at::Tensor& to) const {
  const Shape& shape = at(name).shape;
  if (dim == shape.size()) return fill(name, first, to);
  const auto inner = static_cast<std::ptrdiff_t>(dim) + 1;
  const int64_t row = c10::multiply_integers(shape.begin() + inner, shape.end());
  const int64_t begin = first + region.offset[dim] * row;
  if (std::equal(shape.begin() + inner, shape.end(), region.extent.begin() + inner))
    return fill(name, begin, to);
  for (int64_t i = 0; i < to.size(0); ++i) read_from(name, dim + 1, begin + i * row, region, to.select(0, i));
}

// Cuts what needs a buffer into parts that fit it: into rows, or, if a row does not fit, along the next
// dimension.
void TensorSource::fill(const std::string& name, int64_t first, const at::Tensor& to) const {
  if (to.numel() == 0) return;
  const at::ScalarType dtype = at(name).dtype;
  if (to.is_contiguous() && to.scalar_type() == dtype && to.is_cpu())
    return read_numbers(name, first, bytes_of(to));
  const auto fitting = static_cast<int64_t>(kBufferBytes / c10::elementSize(dtype));
  if (to.numel() <= fitting) {
    const at::Tensor buffer = at::empty(to.sizes(), dtype);
    read_numbers(name, first, bytes_of(buffer));
    to.copy_(buffer);
    return;
  }
  const int64_t row = to.numel() / to.size(0), rows = std::max<int64_t>(1, fitting / row);
  for (int64_t i = 0; i < to.size(0); i += rows)
    fill(name, first + i * row,
         row > fitting ? to.select(0, i) : to.narrow(0, i, std::min(rows, to.size(0) - i)));
}

MemoryTensors::MemoryTensors(const std::map<std::string, at::Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    entries_[name] = {tensor.sizes().vec(), tensor.scalar_type()};
    tensors_[name] = tensor.contiguous().cpu();
  }
}

void MemoryTensors::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  const auto from = bytes_of(tensors_.at(name)).subspan(first * c10::elementSize(at(name).dtype), to.size());
  std::memcpy(to.data(), from.data(), from.size());
}

uint64_t tensors_digest(const TensorSource& tensors, std::string_view prefix) {
  std::size_t largest = 16;  // at least a number
  for (const auto& [name, entry] : tensors.entries()) largest = std::max(largest, bytes_of(entry));
  std::vector<std::byte> buffer(std::min(kChunkBytes, largest));
  std::string digests;
  for (const auto& [name, entry] : tensors.entries()) {
    if (!name.starts_with(prefix)) continue;
    digests += name + " " + dtype_name(entry.dtype);
    for (const int64_t size : entry.shape) digests += " " + std::to_string(size);
    digests += " " + std::to_string(hash_of(tensors, name, buffer)) + "\n";
  }
  return XXH3_64bits(digests.data(), digests.size());
}

}  // namespace tutti
