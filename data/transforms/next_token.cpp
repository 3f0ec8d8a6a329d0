#include "data/transforms/next_token.h"

#include <ATen/ops/constant_pad_nd.h>

#include "data/transforms/ignore_index.h"

namespace tutti {
namespace {

class NextToken final : public Transform {
 public:
  SampleSpec spec(const SampleSpec& before) const override {
    require_tokens(before, kInputArray);
    if (before.shapes.count(kTargetArray)) require_tokens(before, kTargetArray);
    SampleSpec samples = before;
    samples.shapes[kTargetArray] = samples.shapes[kInputArray];
    samples.dtypes[kTargetArray] = at::kLong;
    return samples;
  }

  void apply(Batch& batch, const RowDraws&) const override {
    const char* from = batch.find(kTargetArray) ? kTargetArray : kInputArray;
    batch.set(kTargetArray, shifted_targets(batch[from]));
  }

 private:
  static void require_tokens(const SampleSpec& samples, const char* array) {
    const Shape input = input_of(samples, at::kLong).first;
    const auto dtype = samples.dtypes.find(array);
    const bool integers = dtype == samples.dtypes.end() || dtype->second == at::kLong;
    if (integers && input.size() == 1 && input[0] > 1 && samples.shapes.at(array) == input) return;
    throw TransformError("kind", "expected two tokens or more, int64 [length], and as many targets; here '" +
                                     std::string(array) + "' is " + samples.describe(array) + " a sample");
  }
};

}  // namespace

at::Tensor shifted_targets(const at::Tensor& targets) {
  return at::constant_pad_nd(targets.narrow(-1, 1, targets.size(-1) - 1), {0, 1}, kIgnoredTarget);
}

TransformPtr next_token_transform() { return std::make_shared<NextToken>(); }

TransformPtr NextTokenOptions::make(const Setting&, const SampleSpec&) const {
  return next_token_transform();
}

}  // namespace tutti
