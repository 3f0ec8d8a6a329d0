#include "data/transforms/token_transforms.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "data/transforms/ignore_index.h"
#include "tensors/ignored_target.h"

namespace tutti {
namespace {

constexpr double kMasked = 0.8;
constexpr double kRandomOfRest = 0.5;

class MaskTokens final : public Transform {
 public:
  explicit MaskTokens(const MaskTokensOptions& options) : options_(options) {}

  SampleSpec spec(const SampleSpec& before) const override {
    const auto [shape, dtype] = input_of(before, at::kLong);
    if (dtype != at::kLong || shape.empty())
      throw TransformError("kind", "expected tokens, int64 [length]; here 'input' is " +
                                       before.describe(kInputArray) + " a sample");
    SampleSpec samples = before;
    samples.classes = std::max(before.classes, options_.vocab_size);
    if (options_.mask_token_id >= samples.classes)
      throw TransformError("mask_token_id", "expected a token of the vocabulary, below " +
                                                std::to_string(samples.classes) +
                                                "; vocab_size makes it larger");
    samples.shapes[kTargetArray] = shape;
    samples.dtypes[kTargetArray] = at::kLong;
    return samples;
  }

  void apply(Batch& batch, const RowDraws& draws) const override {
    const at::Tensor tokens = batch[kInputArray];
    std::vector<at::Tensor> inputs, targets;
    const TensorTree* mask = nullptr;
    for (const char* array : {"attention_mask", "segments"})
      if (!mask) mask = batch.find(array);
    const at::Tensor filled =
        mask && mask->tensor().sizes() == tokens.sizes() ? mask->tensor().ne(0) : at::Tensor();
    for (int64_t row = 0; row < tokens.size(0); ++row) {
      MaskedTokens masked = mask_tokens(tokens.select(0, row), options_, *draws(row),
                                        filled.defined() ? filled.select(0, row) : filled);
      inputs.push_back(std::move(masked.input));
      targets.push_back(std::move(masked.target));
    }
    batch.set(kInputArray, at::stack(inputs));
    batch.set(kTargetArray, at::stack(targets));
  }

 private:
  MaskTokensOptions options_;
};

}  // namespace

MaskedTokens mask_tokens(const at::Tensor& tokens, const MaskTokensOptions& options, Draws& draws,
                         const at::Tensor& filled) {
  const auto uniforms = [&] { return draws.uniforms(tokens.sizes().vec()); };
  at::Tensor chosen = uniforms().lt(options.mlm_probability);
  if (!options.special_token_ids.empty())
    chosen = chosen.logical_and(at::isin(tokens, at::tensor(options.special_token_ids)).logical_not());
  if (filled.defined()) chosen = chosen.logical_and(filled);
  const at::Tensor masked = uniforms().lt(kMasked).logical_and(chosen);
  const at::Tensor random =
      uniforms().lt(kRandomOfRest).logical_and(chosen).logical_and(masked.logical_not());
  const at::Tensor words = uniforms().to(at::kDouble).mul(options.vocab_size).to(at::kLong);
  const at::Tensor input = at::where(random, words, tokens.masked_fill(masked, options.mask_token_id));
  return {input, tokens.masked_fill(chosen.logical_not(), kIgnoredTarget)};
}

TransformPtr mask_tokens_transform(const MaskTokensOptions& options) {
  return std::make_shared<MaskTokens>(options);
}

TransformPtr MaskTokensOptions::make(const Setting& section, const SampleSpec& samples) const {
  MaskTokensOptions options = *this;
  if (options.mask_token_id < 0)
    section.at("kind").fail("the data does not say which token is the mask; give mask_token_id");
  const Setting& given = section.at("vocab_size");
  if (given.is_none()) options.vocab_size = samples.classes;
  if (options.vocab_size < std::max<int64_t>(samples.classes, 1))
    given.fail(samples.classes == 0
                   ? "the data does not say how many tokens there are; expected their number"
                   : "expected at least " + std::to_string(samples.classes) + ": the data has tokens up to " +
                         std::to_string(samples.classes - 1));
  return mask_tokens_transform(options);
}

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
