#include "algorithms/augmentation/fit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "data/dataset.h"
#include "runtime/error.h"
#include "tensors/torch_error.h"

namespace tutti {

void require_of_sample(const Algorithm& algorithm, const State& state,
                       const std::function<void(Batch& sample)>& check) try {
  if (state.dataset == nullptr) return;
  const int64_t first = 0;
  Batch sample = state.dataset->get({&first, 1}, {state.seed});
  check(sample);
} catch (const std::exception& error) {
  algorithm.fail(one_line(error));
}

void require_images(const at::Tensor& input) {
  if (input.dim() != 4)
    throw UserError("expected images [C, H, W], found " + shape_text(input.sizes().slice(1)));
}

void require_dense_targets(const State& state, const std::string& remedy) {
  if (state.model->takes_dense_targets()) return;
  throw UserError("targets get a weight for each class, but the loss of " + std::string(state.model->kind()) +
                  " takes class indices alone" + (remedy.empty() ? "" : "; " + remedy));
}

Batch blank_sample(const SampleSpec& samples, Batch sample) {
  Shape shape = samples.shapes.at(kInputArray);
  shape.insert(shape.begin(), 1);
  const auto dtype = samples.dtypes.find(kInputArray);
  sample.set(kInputArray, at::zeros(shape, dtype == samples.dtypes.end() ? at::kFloat : dtype->second));
  return sample;
}

Outputs require_fit(const State& state, const Batch& batch) {
  for (const auto& [name, array] : batch.leaves())
    if (array.numel() == 0) throw UserError("nothing of '" + name + "' would be left");
  const at::NoGradGuard no_grad;
  const ForwardContext evaluating{.training = false};
  Outputs outputs;
  std::string error;
  set_context(*state.model, &evaluating);
  try {
    outputs = state.forward(batch);
  } catch (const std::exception& found) {
    error = one_line(found);
  }
  set_context(*state.model, nullptr);
  if (!error.empty()) throw UserError("the model rejects such a batch: " + error);
  return outputs;
}

}  // namespace tutti
