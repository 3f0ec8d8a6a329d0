#include "job/copied_targets.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "data/transforms/ignore_index.h"
#include "data/transforms/transform.h"

namespace tutti {
namespace {

constexpr int64_t kLookedAt = 16;

// The tokens that a model reads.
struct TokenArrays {
  std::string input = kInputArray, target = kTargetArray;
};

Batch some_samples(const Setting& section, const Dataset& data) {
  const int64_t count = std::min(kLookedAt, data.size());
  const bool is_stream = section.has("command");  // of which the first are read anyway
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(is_stream ? i : i * data.size() / count);
  return data.get(rows, {});
}

struct Tokens {
  at::Tensor input, target;
};

// True if some targets count, and each of them is the token `places` positions later. The last positions have
// no such token.
bool are_ahead(const Tokens& tokens, int64_t places) {
  const int64_t length = tokens.input.size(1) - places;
  if (length < 1) return false;
  const at::Tensor target = tokens.target.narrow(1, 0, length);
  const at::Tensor counted = target.ne(kIgnoredTarget);
  const at::Tensor others = target.ne(tokens.input.narrow(1, places, length)).logical_and(counted);
  return counted.any().item<bool>() && !others.any().item<bool>();
}

// If all tokens are equal, targets are also the next tokens. A few masked tokens may all be unchanged, so
// most targets must count.
bool are_copies(const Tokens& tokens, double least_counted) {
  const double counted = tokens.target.ne(kIgnoredTarget).to(at::kDouble).mean().item<double>();
  return counted > least_counted && are_ahead(tokens, 0) && !are_ahead(tokens, 1);
}

Setting next_token_of(const Setting& section) {
  const Setting transforms = DataSettings::read(section).transforms;
  if (transforms.is_none()) return {};
  for (const Setting& transform : transforms.array())
    if (transform.at("kind").text() == "next_token") return transform.at("kind");
  return {};
}

// If the target is already the next token, next_token would shift it once more.
void require_none_skipped(const Setting& section, const Tokens& tokens) {
  const Setting next_token = next_token_of(section);
  if (!next_token.is_none() && are_ahead(tokens, 2) && !are_ahead(tokens, 1))
    next_token.fail(
        "each target would be the token two places on, so that the model learns to skip one; "
        "the targets of this data are the next tokens already: leave next_token out");
}

void require_no_copies(const Setting& section, const Dataset& data, bool is_causal) {
  const SampleSpec samples = data.spec();
  TokenArrays arrays;
  if (!is_causal && samples.shapes.count("input_ids")) arrays.input = "input_ids";
  if (!is_causal && samples.shapes.count("labels")) arrays.target = "labels";
  const auto target = samples.shapes.find(arrays.target);
  if (target == samples.shapes.end() || target->second != samples.shapes.at(arrays.input)) return;
  const Batch batch = some_samples(section, data);
  const Tokens tokens{batch[arrays.input], batch[arrays.target]};
  require_none_skipped(section, tokens);
  if (!are_copies(tokens, is_causal ? 0.0 : 0.5)) return;
  section.at(section.has("arrays") ? "arrays" : "kind")
      .fail("each target in '" + arrays.target + "' is the token of '" + arrays.input +
            "' at its own place, which a model learns to copy; the transform " +
            (is_causal ? "next_token shifts targets, as Hugging Face's models do"
                       : "mask_tokens masks tokens"));
}

}  // namespace

void require_no_copied_targets(const Job& job) {
  const std::string& kind = job.recipe.at("model").at("kind").text();
  const bool is_causal = kind == "gpt" || kind == "llama";
  if (!is_causal && kind != "bert_mlm") return;
  require_no_copies(job.recipe.at("data").at("train"), *job.train, is_causal);
  for (const Evaluator& evaluator : job.evaluators)
    require_no_copies(evaluator.section, *evaluator.data, is_causal);
}

}  // namespace tutti
