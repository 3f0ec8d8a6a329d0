#include "training/metrics/aimed.h"

#include <ATen/core/Tensor.h>

#include "models/losses.h"
#include "models/model.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";

std::string text_of(const Setting& keys, const char* key) {
  return keys.has(key) ? keys.at(key).text() : std::string();
}

}  // namespace

LossParts::Compared Aim::compared(const Model& model, const Batch& batch, const Outputs& outputs) const try {
  const std::string output = text_of(keys_, "output"), target = text_of(keys_, "target");
  if (const auto* many = dynamic_cast<const LossParts*>(&model))
    return many->compared(outputs, batch, output, target);
  if (!output.empty() && outputs.is_leaf())
    throw UserError("the model has one output, without a name; leave this key out");
  return {output.empty() ? outputs.tensor() : outputs[output],
          wide_indices(batch[target.empty() ? kTarget : target])};
} catch (const UserError& error) {
  if (error.position().line > 0 || error.kind() != EndKind::kUserError) throw;
  keys_.at(keys_.has("output") ? "output" : "target").fail(error);
}

}  // namespace tutti
