#include "algorithms/augmentation/fit.h"

#include "data/dataset.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

void require_images(const at::Tensor& input) {
  if (input.dim() != 4)
    throw UserError("expected images [C, H, W], found " + shape_text(input.sizes().slice(1)));
}

void require_dense_targets(const State& state, const std::string& remedy) {
  if (state.model->takes_dense_targets()) return;
  throw UserError("targets get a weight for each class, but the loss of " + std::string(state.model->kind()) +
                  " takes no such targets" + (remedy.empty() ? "" : "; " + remedy));
}

std::vector<int64_t> samples_of_ranks(const State& state) {
  std::vector<int64_t> global = {state.global_batch};
  Timestamp last;
  last.batch = last.batch_in_epoch = state.dataloader_len - 1;
  const bool is_short = state.dataloader_len * state.global_batch > state.train_samples;
  const bool comes = state.max_duration.value() == 0 || elapsed(last, state.max_duration) < 1;
  if (is_short && comes) global.push_back(state.train_samples % state.global_batch);
  std::vector<int64_t> parts;
  for (const int64_t samples : global) {
    parts.push_back(samples / state.topology.data_world);
    parts.push_back(largest_part(samples, state.topology.data_world));
  }
  return parts;
}

}  // namespace tutti
