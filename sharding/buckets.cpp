#include "sharding/buckets.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, int64_t bucket_bytes,
                        std::optional<at::ScalarType> dtype) {
  std::vector<std::size_t> all(parameters.size());
  std::iota(all.begin(), all.end(), 0);
  return plan_buckets(parameters, all, bucket_bytes, dtype);
}

BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, const std::vector<std::size_t>& members,
                        int64_t bucket_bytes, std::optional<at::ScalarType> dtype) {
  BucketPlan plan;
  for (const std::size_t i : std::views::reverse(members)) {
    const at::Tensor& parameter = parameters[i];
    const at::ScalarType type = dtype.value_or(parameter.scalar_type());
    const auto item = static_cast<int64_t>(c10::elementSize(type));
    const int64_t bytes = aligned(std::max<int64_t>(parameter.numel(), 1) * item);  // unlike places
    const bool opens = plan.buckets.empty() || plan.buckets.back().dtype != type ||
                       plan.buckets.back().bytes + bytes > bucket_bytes;
    if (opens && bytes > bucket_bytes) TUTTI_PROBE("bucket: a parameter is larger than a bucket");
    if (opens) plan.buckets.push_back({type, 0, {}});
    Bucket& bucket = plan.buckets.back();
    bucket.slots.push_back({i, bucket.bytes / item});
    bucket.bytes += bytes;
  }
  return plan;
}

Bucket with_only(const Bucket& bucket, const std::vector<bool>& members) {
  Bucket part = bucket;
  std::erase_if(part.slots, [&](const BucketSlot& slot) { return !members[slot.parameter]; });
  return part;
}

at::Tensor stand_in(const at::Tensor& parameter, at::ScalarType dtype) {
  return at::empty_strided(parameter.sizes(), parameter.strides(), at::TensorOptions(at::kMeta).dtype(dtype));
}

at::Tensor slot_view(const at::Tensor& memory, const Bucket& bucket, const BucketSlot& slot,
                     const at::Tensor& parameter) {
  TUTTI_ASSERT(parameter.is_non_overlapping_and_dense(), "a gradient bucket needs dense parameters");
  return memory.view(bucket.dtype).as_strided(parameter.sizes(), parameter.strides(), slot.offset);
}

}  // namespace tutti
