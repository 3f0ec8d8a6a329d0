#include "sharding/buckets.h"

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, int64_t bucket_bytes,
                        std::optional<at::ScalarType> dtype) {
  BucketPlan plan;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const at::Tensor& parameter = parameters[i];
    const at::ScalarType type = dtype.value_or(parameter.scalar_type());
    const auto item = static_cast<int64_t>(c10::elementSize(type));
    const int64_t bytes = aligned(parameter.numel() * item);
    const bool opens = plan.buckets.empty() || plan.buckets.back().dtype != type ||
                       plan.buckets.back().bytes + bytes > bucket_bytes;
    if (opens) plan.buckets.push_back({type, 0, {}});
    Bucket& bucket = plan.buckets.back();
    bucket.slots.push_back({i, bucket.bytes / item});
    bucket.bytes += bytes;
  }
  return plan;
}

at::Tensor slot_view(const at::Tensor& memory, const Bucket& bucket, const BucketSlot& slot,
                     const at::Tensor& parameter) {
  TUTTI_ASSERT(parameter.is_non_overlapping_and_dense(), "a gradient bucket needs dense parameters");
  return memory.view(bucket.dtype).as_strided(parameter.sizes(), parameter.strides(), slot.offset);
}

}  // namespace tutti
