#include "data/transforms/ignore_index.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/masked_fill.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr const char* kTargets[] = {kTargetArray, "labels"};

// The samples with targets of int64. Throws TransformError for others than integers.
SampleSpec with_integer_targets(const SampleSpec& before, const std::string& option, const std::string& use) {
  SampleSpec samples = before;
  for (const char* name : kTargets) {
    const auto dtype = samples.dtypes.find(name);
    if (!samples.shapes.count(name) || dtype == samples.dtypes.end()) continue;
    if (!at::isIntegralType(dtype->second, /*includeBool=*/false))
      throw TransformError(option, "targets to " + use + " are integers; here '" + name + "' is " +
                                       before.describe(name) + " a sample");
    dtype->second = at::kLong;
  }
  return samples;
}

class IgnoreIndex final : public Transform {
 public:
  explicit IgnoreIndex(int64_t index) : index_(index) {}

  SampleSpec spec(const SampleSpec& before) const override {
    return with_integer_targets(before, "kind", "ignore");
  }
  void apply(Batch& batch, const RowDraws&) const override {
    for (const char* name : kTargets) {
      if (!batch.find(name)) continue;
      const at::Tensor targets = batch[name].to(at::kLong);
      batch.set(name, targets.masked_fill(targets.eq(index_), kIgnoredTarget));
    }
  }
  bool changes_input() const override { return false; }

 private:
  int64_t index_;
};

class FirstClass final : public Transform {
 public:
  explicit FirstClass(int64_t first) : first_(first) {}

  SampleSpec spec(const SampleSpec& before) const override {
    SampleSpec samples = with_integer_targets(before, "first_class", "number from 0");
    if (samples.classes > 0 && samples.classes <= first_)
      throw TransformError("first_class", "the labels are below " + std::to_string(samples.classes));
    samples.classes = std::max<int64_t>(samples.classes - first_, 0);
    return samples;
  }
  void apply(Batch& batch, const RowDraws&) const override {
    for (const char* name : kTargets) {
      if (!batch.find(name)) continue;
      const at::Tensor targets = batch[name].to(at::kLong), ignored = targets.eq(kIgnoredTarget);
      const at::Tensor numbered = targets.sub(first_);
      if (numbered.lt(0).logical_and(ignored.logical_not()).any().item<bool>())
        throw UserError("a label below first_class = " + std::to_string(first_));
      batch.set(name, numbered.masked_fill(ignored, kIgnoredTarget));
    }
  }
  bool changes_input() const override { return false; }

 private:
  int64_t first_;
};

}  // namespace

TransformPtr first_class_transform(int64_t first) { return std::make_shared<FirstClass>(first); }

TransformPtr ignore_index_transform(int64_t index) { return std::make_shared<IgnoreIndex>(index); }

}  // namespace tutti
