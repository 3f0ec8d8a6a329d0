#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer.h"
#include "sharding/buckets.h"
#include "sharding/tree_sum.h"
#include "tensors/digests.h"

namespace tutti {

// Gradients as views of flat buckets, which backward fills.
//
// The first portion's gradients are autograd's own tensors and are copied into the bucket on arrival,
// which is cheaper than zeroing the bucket and adding. Further portions add to the views in place. During
// the last portion a bucket is reported as soon as all its gradients exist.
//
// If bucket and parameter differ in dtype, autograd sums over portions in the parameter's dtype. The sum
// is cast once into the bucket, and the reduced gradient is cast back.
//
// Where portions are grains, their gradients are summed as a tree (sharding/tree_sum.h), and come into the
// bucket during the last portion.
class GradientBuckets {
 public:
  using Full = std::function<void(int bucket)>;

  // Sets a hook on every parameter that requires a gradient; other parameters have no place in the buckets,
  // even after a later thaw. `dtype`: see plan_buckets. `grains`: portions are grains.
  GradientBuckets(std::vector<NamedParameter> parameters, int64_t bucket_bytes, Full full,
                  std::optional<at::ScalarType> dtype = std::nullopt, bool grains = false);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;

  const BucketPlan& plan() const { return plan_; }
  // Sets the flat memory of every bucket, `plan().buckets[i].bytes` each.
  void bind(const std::vector<at::Tensor>& memory);

  // Looks, between steps, at which parameters require a gradient now.
  void follow_frozen();
  // The bytes to reduce of each bucket: up to its last parameter that requires a gradient. A bucket of 0
  // bytes is not reported. Parameters in between that require no gradient have zeros.
  const std::vector<int64_t>& live_bytes() const { return live_bytes_; }

  // The bytes of each parameter in the live part of each bucket.
  std::vector<std::vector<DigestPart>> parts() const;

  // The reduced gradient of each parameter, in the order given, for the optimizer; undefined without a place.
  // Meaningless for a parameter that no longer requires a gradient.
  std::vector<at::Tensor> gradients();
  // Number of trained parameters without a gradient in this step. Meaningless after abandon_pass.
  int64_t unused() const;
  // [parameters] float64: 1 for a parameter with a gradient, else 0. Meaningless after abandon_pass.
  at::Tensor used() const;
  double bytes_of_grains() const { return grains_ ? grains_->bytes() : 0; }
  // True if a gradient has memory outside of its bucket.
  bool has_own_gradients() const;

  void begin_pass();
  void begin_portion(int64_t index, bool last);
  void end_portion();
  // Call after the last backward: zeroes missing gradients and reports the remaining buckets.
  void end_pass();
  // Call after an exception in backward. Reductions of the step continue: zeroes and reports the remaining
  // buckets.
  void abandon_pass();

 private:
  static constexpr int kNone = -1;
  struct ParameterState {
    int bucket = kNone;
    bool live = false;      // has a place in the live part of its bucket
    bool used = false;      // has a gradient in this step
    bool filled = false;    // its view holds a gradient
    bool finished = false;  // no portion will add to it
  };
  bool has_place(std::size_t parameter) const { return states_[parameter].bucket != kNone; }
  int64_t live_part(const Bucket& bucket) const;
  void begin_last_portion();
  void on_gradient(std::size_t parameter);
  at::Tensor take_sum(std::size_t parameter);
  void finish(std::size_t parameter);
  void fill(std::size_t parameter);
  bool casts(std::size_t parameter) const;

  std::vector<NamedParameter> parameters_;
  BucketPlan plan_;
  Full full_;
  std::vector<at::Tensor> views_;
  std::vector<ParameterState> states_;
  std::vector<int64_t> live_bytes_;
  std::vector<int> missing_;  // unfinished parameters, by bucket
  int64_t portion_ = 0;
  bool last_ = false;              // the portion
  std::optional<TreeSum> grains_;  // none: autograd sums over portions
};

}  // namespace tutti
