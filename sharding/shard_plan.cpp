#include "sharding/shard_plan.h"

#include <ATen/ops/zeros.h>

#include <utility>

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
  return live_bytes < 0 || slot.offset * bucket.item() < live_bytes;
}

// The elements of each slot in the part of a rank.
std::vector<ElementRange> places_in_part(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                                         const Share& share) {
  std::vector<ElementRange> places;
  int64_t end = 0;
  for (const BucketSlot& slot : bucket.slots) {
    const ElementRange own = elements(parameters[slot.parameter], share);
    const int64_t begin = std::exchange(end, end + own.end - own.begin);
    places.push_back({begin, end});
  }
  return places;
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
  const auto rows = rows_in_part(part, bucket, parameters, share);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const std::size_t p = bucket.slots[s].parameter;
    gradients[p] = rows[s].to(parameters[p].scalar_type());
  }
}

std::vector<DigestPart> names_in_part(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                                      const std::vector<std::string>& names, const Share& share) {
  std::vector<DigestPart> parts;
  const auto places = places_in_part(bucket, parameters, share);
  for (std::size_t s = 0; s < places.size(); ++s) {
    const auto [begin, end] = places[s];
    if (begin < end)
      parts.push_back({names[bucket.slots[s].parameter], begin * bucket.item(), end * bucket.item()});
  }
  return parts;
}

std::vector<at::Tensor> rows_in_part(const at::Tensor& part, const Bucket& bucket,
                                     const std::vector<at::Tensor>& parameters, const Share& share) {
  std::vector<at::Tensor> rows;
  const auto places = places_in_part(bucket, parameters, share);
  for (std::size_t s = 0; s < places.size() && places[s].end <= part.numel(); ++s) {
    const at::Tensor& parameter = parameters[bucket.slots[s].parameter];
    Shape sizes = parameter.sizes().vec();
    if (!sizes.empty()) sizes[0] = rows_of_piece(parameter, share.pieces, share.index).count();
    const bool others_scalar = sizes.empty() && share.index > 0;
    rows.push_back(others_scalar ? at::zeros({}, part.options())
                                 : part.as_strided(sizes, parameter.strides(), places[s].begin));
  }
  return rows;
}

}  // namespace tutti
