#include "sharding/shard_plan.h"

#include <ATen/ops/zeros.h>

#include "runtime/error.h"

namespace tutti {
namespace {

// The rows that a rank has in its part, as elements of the parameter's memory.
ElementRange elements(const at::Tensor& parameter, const Share& share) {
  if (parameter.dim() == 0) return {0, share.index == 0 ? 1 : 0};
  const int64_t row = parameter.size(0) > 0 ? parameter.numel() / parameter.size(0) : 0;
  const Rows rows = rows_of_piece(parameter, share.pieces, share.index);
  return {rows.begin * row, rows.end * row};
}

bool is_live(const Bucket& bucket, const BucketSlot& slot, int64_t live_bytes) {
  return live_bytes < 0 || slot.offset * static_cast<int64_t>(c10::elementSize(bucket.dtype)) < live_bytes;
}

}  // namespace

bool can_cut(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.numel() == 0 || tensor.size(0) == 1) return true;
  return tensor.is_non_overlapping_and_dense() && tensor.stride(0) == tensor.numel() / tensor.size(0);
}

CutPtr cut_by_rows(const Bucket& bucket, const std::vector<at::Tensor>& parameters, int pieces,
                   int64_t live_bytes) {
  std::vector<std::vector<ElementRange>> parts(static_cast<std::size_t>(pieces));
  for (int rank = 0; rank < pieces; ++rank)
    for (const BucketSlot& slot : bucket.slots) {
      if (!is_live(bucket, slot, live_bytes)) continue;
      TUTTI_ASSERT(can_cut(parameters[slot.parameter]), "a parameter whose rows are not outermost in memory");
      const ElementRange own = elements(parameters[slot.parameter], {pieces, rank});
      if (own.begin < own.end)
        parts[static_cast<std::size_t>(rank)].push_back({slot.offset + own.begin, slot.offset + own.end});
    }
  return std::make_shared<const Cut>(parts);
}

void take_rows(const at::Tensor& part, const Bucket& bucket, const std::vector<at::Tensor>& parameters,
               const Share& share, std::vector<at::Tensor>& gradients) {
  int64_t end = 0;
  for (std::size_t s = 0; s < bucket.slots.size(); ++s) {
    const std::size_t p = bucket.slots[s].parameter;
    const at::Tensor& parameter = parameters[p];
    const ElementRange own = elements(parameter, share);
    end += own.end - own.begin;
    if (end > part.numel()) return;  // frozen from here on
    gradients[p] = rows_in_part(part, bucket, s, parameters, share).to(parameter.scalar_type());
  }
}

std::vector<DigestPart> names_in_part(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                                      const std::vector<std::string>& names, const Share& share) {
  const auto item = static_cast<int64_t>(c10::elementSize(bucket.dtype));
  std::vector<DigestPart> parts;
  int64_t begin = 0;
  for (const BucketSlot& slot : bucket.slots) {
    const ElementRange own = elements(parameters[slot.parameter], share);
    const int64_t end = begin + (own.end - own.begin) * item;
    if (end > begin) parts.push_back({names[slot.parameter], begin, end});
    begin = end;
  }
  return parts;
}

at::Tensor rows_in_part(const at::Tensor& part, const Bucket& bucket, std::size_t slot,
                        const std::vector<at::Tensor>& parameters, const Share& share) {
  int64_t before = 0;
  for (std::size_t s = 0; s < slot; ++s) {
    const ElementRange own = elements(parameters[bucket.slots[s].parameter], share);
    before += own.end - own.begin;
  }
  const at::Tensor& parameter = parameters[bucket.slots[slot].parameter];
  if (parameter.dim() == 0 && share.index > 0) return at::zeros({}, part.options());
  Shape sizes = parameter.sizes().vec();
  if (!sizes.empty()) sizes[0] = rows_of_piece(parameter, share.pieces, share.index).count();
  return part.as_strided(sizes, parameter.strides(), before);
}

}  // namespace tutti
