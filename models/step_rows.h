#pragma once

#include "tensors/tree.h"

namespace tutti {

// The rows of all samples of a step, for models with Model::compares_step. As in GradCache (Gao et al., 2021)
// a step begins with forward passes of all its microbatches, without gradients and listeners, whose rows
// (Model::rows) the ranks gather. `loss` then gives, for each microbatch, the loss of the whole step. Its
// gradients go through the rows of the microbatch's own samples alone, so are a part of the step's, and no
// rank waits for other ranks in backward. For that
// - the loss is a function of the rows: trained factors of the rows are part of the rows;
// - the loss is the same whichever samples are the microbatch's;
// - `loss_weight` does not depend on what listeners do after BEFORE_TRAIN_BATCH. In evaluations a step is a
// batch of all ranks, which gather its rows after all its forward passes.

// [samples of the step, numbers] in the order of the global batch: `mine`, rows of the batch's samples, with
// gradients, all other rows without. Outside of training and evaluations `mine` alone: a batch's samples are
// compared with each other.
at::Tensor rows_of_step(const Batch& batch, const at::Tensor& mine);

// int64 [N]: the places of `mine` in rows_of_step, for metrics of the batch's own samples.
at::Tensor places_in_step(const Batch& batch, const at::Tensor& mine);

// The batch with the inputs of rows_of_step: the rows of all samples, in which the batch's rows begin at
// `first`. Called by the trainer.
Batch with_step_rows(Batch batch, const at::Tensor& rows, int64_t first);

}  // namespace tutti
