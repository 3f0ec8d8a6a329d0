#include "actors/resume.h"

#include "runtime/error.h"

namespace tutti {

RunState resume(Trainee& trainee, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string& folder = checkpoint.folder;
  RunState state = RunState::from_json(checkpoint.state);
  if (state.seed != terms.seed)
    throw UserError(folder + ": it was trained with seed " + std::to_string(state.seed) +
                    ", the recipe says " + std::to_string(terms.seed));
  if (state.global_batch != terms.global_batch)
    throw UserError(folder + ": it was trained with batches of " + std::to_string(state.global_batch) +
                    " samples, the recipe says " + std::to_string(terms.global_batch));
  if (state.data_digest != terms.data_digest)
    throw UserError(folder + ": it was trained on other data than [data.train] names");
  restore_tensors(trainee, checkpoint.tensors, folder);
  return state;
}

}  // namespace tutti
