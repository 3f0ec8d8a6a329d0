#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tutti {

// The position of a parameter's gradient in a bucket.
struct BucketSlot {
  std::size_t parameter = 0;  // index in the order given to plan_buckets
  int64_t offset = 0;         // elements from the bucket's start; a multiple of 64 bytes
};

// Gradients that are reduced together: one dtype, one flat block of memory.
struct Bucket {
  at::ScalarType dtype = at::kFloat;
  int64_t bytes = 0;  // with padding
  std::vector<BucketSlot> slots;

  int64_t item() const { return static_cast<int64_t>(c10::elementSize(dtype)); }  // bytes of a number
};

struct BucketPlan {
  std::vector<Bucket> buckets;  // in the order of backward: the last parameters first
};

// Packs parameters, the last first, into buckets of at most `bucket_bytes`. A larger parameter gets a bucket
// alone. `dtype`: of the buckets; nullopt: of their parameters. The plan depends only on sizes and dtypes, so
// all ranks have the same plan.
BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, int64_t bucket_bytes,
                        std::optional<at::ScalarType> dtype = std::nullopt);
// The same for the parameters `members` only (ascending indices).
BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, const std::vector<std::size_t>& members,
                        int64_t bucket_bytes, std::optional<at::ScalarType> dtype = std::nullopt);
// The bucket with only the slots of these parameters, at their places. `members`: by parameter.
Bucket with_only(const Bucket& bucket, const std::vector<bool>& members);
inline constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();  // a bucket per run of one dtype

// A tensor with the parameter's sizes and strides, on the meta device, for plans.
at::Tensor stand_in(const at::Tensor& parameter, at::ScalarType dtype);

// A view of the bucket's memory (flat uint8) with the parameter's sizes and strides. Fused optimizers read
// gradient and parameter in memory order and would be silently wrong with other strides (channels-last).
at::Tensor slot_view(const at::Tensor& memory, const Bucket& bucket, const BucketSlot& slot,
                     const at::Tensor& parameter);

}  // namespace tutti
