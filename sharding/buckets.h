#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti {

// Where one parameter's gradient lies in a bucket.
struct BucketSlot {
  std::size_t parameter = 0;  // index in the order given to plan_buckets
  int64_t offset = 0;         // elements from the bucket's start; a multiple of 64 bytes
};

// Gradients that are reduced at once: one dtype, one flat piece of memory.
struct Bucket {
  at::ScalarType dtype = at::kFloat;
  int64_t bytes = 0;  // of the memory, padding included
  std::vector<BucketSlot> slots;
};

struct BucketPlan {
  std::vector<Bucket> buckets;  // in the order in which backward fills them: the last parameters first
};

// Packs parameters, last ones first, into buckets of at most `bucket_bytes`. A parameter that is larger is a
// bucket of its own. Buckets are of `dtype`, or of their parameters' own where there is none. The same on
// every rank, since it looks at sizes and dtypes only.
BucketPlan plan_buckets(const std::vector<at::Tensor>& parameters, int64_t bucket_bytes,
                        std::optional<at::ScalarType> dtype = std::nullopt);

// The slot of a parameter as a view of the bucket's memory (flat uint8) with the parameter's own sizes and
// strides: the fused optimizers read gradient and parameter in step, and are silently wrong where the strides
// differ (channels-last).
at::Tensor slot_view(const at::Tensor& memory, const Bucket& bucket, const BucketSlot& slot,
                     const at::Tensor& parameter);

}  // namespace tutti
