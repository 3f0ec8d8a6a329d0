#include "data/transforms/ignore_index.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/masked_fill.h>

namespace tutti {
namespace {

constexpr const char* kTargets[] = {kTargetArray, "labels"};

class IgnoreIndex final : public Transform {
 public:
  explicit IgnoreIndex(int64_t index) : index_(index) {}

  SampleSpec spec(const SampleSpec& before) const override {
    SampleSpec samples = before;
    for (const char* name : kTargets) {
      const auto dtype = samples.dtypes.find(name);
      if (!samples.shapes.count(name) || dtype == samples.dtypes.end()) continue;
      if (!at::isIntegralType(dtype->second, /*includeBool=*/false))
        throw TransformError("kind", std::string("targets to ignore are integers; here '") + name + "' is " +
                                         before.describe(name) + " a sample");
      dtype->second = at::kLong;
    }
    return samples;
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

}  // namespace

TransformPtr ignore_index_transform(int64_t index) { return std::make_shared<IgnoreIndex>(index); }

}  // namespace tutti
