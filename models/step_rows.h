#pragma once

#include "tensors/tree.h"

namespace tutti {

// The rows of all samples of a step, for models with Model::compares_step. As in GradCache (Gao et al., 2021)
// a step begins with forward passes of all its microbatches, without gradients and listeners, whose rows
// (Model::rows) the ranks gather. `loss` then gives, for each microbatch, the loss of the whole step. Its
// gradients go through the rows of the microbatch's own samples alone, so they are a part of the step's, and
// no rank waits for another in backward. For that
// - the loss is a function of the rows: what it multiplies them by, and is trained, is part of the rows;
// - the loss is the same whichever samples are the microbatch's;
// - `loss_weight` does not depend on what listeners do after BEFORE_TRAIN_BATCH.
// In evaluations a step is a batch of all ranks: they gather its rows once it has had all its forward passes.

// [samples of the step, numbers] in the order of the global batch: `mine`, rows of the batch's samples, with
// gradients, all others without. Outside of training and evaluations `mine` itself: a batch is compared with
// itself.
at::Tensor rows_of_step(const Batch& batch, const at::Tensor& mine);

// int64 [N]: the places of `mine` in rows_of_step, for metrics of the batch's own samples.
at::Tensor places_in_step(const Batch& batch, const at::Tensor& mine);

// The batch with what rows_of_step needs: the rows of all samples, of which those of the batch begin at
// `first`. Called by the trainer.
Batch with_step_rows(Batch batch, const at::Tensor& rows, int64_t first);

}  // namespace tutti
