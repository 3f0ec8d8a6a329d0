#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer.h"
#include "sharding/buckets.h"
#include "tensors/digests.h"

namespace tutti {

// Parameters' gradients as views of flat buckets, filled while backward runs.
//
// The first microbatch's gradients are autograd's own tensors: its accumulation takes them as they are, and
// they are copied into the bucket as each appears (cheaper than zeroing the bucket and adding). Further
// microbatches add to the views in place. During the last one a bucket is reported as soon as its last
// gradient is in.
//
// Where buckets are of another dtype than their parameters, autograd keeps the sum over microbatches in the
// parameter's own, and it is cast once, as it enters the bucket; what comes of the reduction is cast back.
class GradientBuckets {
 public:
  using Full = std::function<void(int bucket)>;

  // Sets a hook on every parameter; the parameters must outlive this.
  // `dtype` of the buckets; none: the parameters' own.
  GradientBuckets(std::vector<NamedParameter> parameters, int64_t bucket_bytes, Full full,
                  std::optional<at::ScalarType> dtype = std::nullopt);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;

  const BucketPlan& plan() const { return plan_; }
  // Flat memory for every bucket, `plan().buckets[i].bytes` each.
  void bind(const std::vector<at::Tensor>& memory);

  // Which bytes of each bucket are which parameter's.
  std::vector<std::vector<DigestPart>> parts() const;

  // Once all is reduced: the gradient of each parameter, in the order given, for the optimizer.
  std::vector<at::Tensor> gradients();
  // How many parameters that are trained got no gradient in the step; which ones got one, [parameters]
  // float64 of 0 and 1. Of a step that was abandoned: of no use.
  int64_t unused() const;
  at::Tensor used() const;
  // Whether any has memory of its own besides its bucket's.
  bool casts() const;

  void begin_step();
  void begin_last_microbatch();
  // After the last backward: what got no gradient is zero, and buckets that were not reported are.
  void end_step();
  // After a backward that was thrown out of: the step is aborted, but its reductions go on. What was not
  // reported is zero now, and is.
  void abandon_step();

 private:
  struct Place {
    int bucket = 0;
    bool used = false;    // this step: a gradient came
    bool filled = false;  // by any microbatch
    bool final = false;   // by the last one
  };
  void arrived(std::size_t parameter);
  void settle(std::size_t parameter);
  void fill(std::size_t parameter);
  bool casts(std::size_t parameter) const;

  std::vector<NamedParameter> parameters_;
  BucketPlan plan_;
  Full full_;
  std::vector<at::Tensor> views_;
  std::vector<Place> places_;
  std::vector<int> missing_;  // parameters not final yet, by bucket
  bool last_ = false;
};

}  // namespace tutti
