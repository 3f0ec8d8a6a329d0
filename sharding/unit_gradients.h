#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "models/layers/layer.h"
#include "sharding/buckets.h"
#include "sharding/units.h"

namespace tutti {

// Gradients of which a rank keeps only its share. A portion's gradients stay autograd's own tensors until
// all gradients of a unit exist; then they are copied into the unit's bucket, to be reduced over ranks, and
// dropped. Buckets are filled in the same order on all ranks: the last unit first, the root unit at the end.
// If gradients of a unit do not appear, the unit is complete when backward has left the unit, with zeros in
// their place. Parameters that no longer require a gradient are left out: their places in a bucket are not
// written, and a bucket of only such parameters is not filled.
class UnitGradients {
 public:
  // Of the buckets' memory.
  class Owner {
   public:
    // Called before `bucket` is filled: returns its flat memory (uint8), which must no longer be in use.
    virtual at::Tensor memory_of(std::size_t bucket) = 0;
    virtual void full(std::size_t bucket) = 0;

   protected:
    ~Owner() = default;
  };

  // Sets a hook on every parameter that requires a gradient; other parameters have no place, even after a
  // later thaw. `dtype`: of the buckets; nullopt: of `like`, tensors with the parameters' sizes and strides.
  // `grains`: portions are grains, where a missing gradient changes no bit.
  UnitGradients(std::vector<NamedParameter> parameters, const std::vector<at::Tensor>& like,
                const std::vector<Unit>& units, std::optional<at::ScalarType> dtype, bool grains,
                Owner& owner);
  ~UnitGradients();
  UnitGradients(const UnitGradients&) = delete;

  // In the order in which they are filled.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::size_t unit_of(std::size_t bucket) const { return units_[bucket]; }

  void begin_pass();
  void begin_portion();
  // Backward has left all units after `unit`.
  void leave_after(std::size_t unit);
  // After the last backward of the portion: fills all buckets that are left.
  void end_portion();
  // After an exception: drops the gradients of the portion.
  void abandon_pass();

  // As of GradientBuckets.
  int64_t unused() const;
  at::Tensor used() const;

 private:
  static constexpr int kNone = -1;
  bool has_place(std::size_t parameter) const { return bucket_of_[parameter] != kNone; }
  void on_gradient(std::size_t parameter);
  bool is_live(const Bucket& bucket) const;
  void fill_complete();
  void fill(std::size_t bucket);

  std::vector<NamedParameter> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> units_;  // of each bucket
  std::vector<int> bucket_of_;      // of each parameter
  std::vector<int64_t> missing_;    // gradients of this portion still missing, by bucket
  std::vector<int64_t> found_;      // and found
  std::vector<bool> used_;          // by parameter, in this step
  std::size_t next_ = 0;            // the bucket to be filled next
  bool grains_;
  Owner& owner_;
};

}  // namespace tutti
