#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// The events of a run, at which algorithms, callbacks and loggers act: composer.core.Event, all 40. The loop
// below shows each event in its place; actions of the trainer are in lower case.
//
//   INIT                              surgery: no optimizer yet, parameters may be on the meta device
//   BEFORE_LOAD
//     restore the checkpoint
//   AFTER_LOAD
//   FIT_START                         alias TRAINING_START
//   until max_duration is reached:
//     ITERATION_START                 once, unless [train] iteration_length is set
//     EPOCH_START
//     for each batch:
//       BEFORE_DATALOADER             once more at the end of the epoch
//       AFTER_DATALOADER              a step that ran out of memory is retried from here
//       BATCH_START
//       BEFORE_TRAIN_BATCH            up to AFTER_TRAIN_BATCH: once for each pass of a closure
//       for each microbatch:
//         BEFORE_FORWARD
//           outputs = model.forward(batch)
//         AFTER_FORWARD
//         BEFORE_LOSS
//           loss = model.loss(outputs, batch)
//         AFTER_LOSS
//         BEFORE_BACKWARD
//           loss.backward()
//         AFTER_BACKWARD
//       --- the verdict of all ranks: before that of the last pass, no lasting state may change
//       AFTER_TRAIN_BATCH             gradients are reduced
//         optimizer.step(), schedulers, metrics, time advances
//       BATCH_END
//         due evaluators
//       BATCH_CHECKPOINT
//     EPOCH_END
//       due evaluators
//     EPOCH_CHECKPOINT
//     ITERATION_END, ITERATION_CHECKPOINT   if [train] iteration_length is set
//   FIT_END                           alias TRAINING_END
//     evaluators not run after the last step; a program's tasks, which may continue from FIT_START
//
//   A due checkpoint is written at the end of the step, after the last of BATCH_CHECKPOINT, EPOCH_CHECKPOINT
//   and ITERATION_CHECKPOINT; at the end of the run after FIT_END.
//
//   An evaluation:                    EVAL_BEFORE_ALL, or outside of training EVAL_STANDALONE_START
//     for each evaluator:
//       EVAL_START
//       for each batch:
//         EVAL_BATCH_START
//         EVAL_BEFORE_FORWARD
//           outputs = model.eval_forward(batch)
//         EVAL_AFTER_FORWARD
//           metrics
//         EVAL_BATCH_END
//       EVAL_END
//   EVAL_AFTER_ALL                    or EVAL_STANDALONE_END
//
//   Predictions:                      PREDICT_START
//     for each batch:
//       PREDICT_BATCH_START
//       PREDICT_BEFORE_FORWARD
//         outputs = model.eval_forward(batch)
//       PREDICT_AFTER_FORWARD
//       PREDICT_BATCH_END
//   PREDICT_END
enum class Event {
  kInit,
  kBeforeLoad,
  kAfterLoad,
  kFitStart,
  kIterationStart,
  kEpochStart,
  kBeforeDataloader,
  kAfterDataloader,
  kBatchStart,
  kBeforeTrainBatch,
  kBeforeForward,
  kAfterForward,
  kBeforeLoss,
  kAfterLoss,
  kBeforeBackward,
  kAfterBackward,
  kAfterTrainBatch,
  kBatchEnd,
  kBatchCheckpoint,
  kEpochEnd,
  kEpochCheckpoint,
  kIterationEnd,
  kIterationCheckpoint,
  kFitEnd,
  kEvalBeforeAll,
  kEvalStart,
  kEvalBatchStart,
  kEvalBeforeForward,
  kEvalAfterForward,
  kEvalBatchEnd,
  kEvalEnd,
  kEvalAfterAll,
  kEvalStandaloneStart,
  kEvalStandaloneEnd,
  kPredictStart,
  kPredictBatchStart,
  kPredictBeforeForward,
  kPredictAfterForward,
  kPredictBatchEnd,
  kPredictEnd
};

inline constexpr std::size_t kEvents = 40;

// "before_forward"
const char* name(Event event);
// Finds an event by name or alias, in any case. Throws UserError that suggests the nearest name.
Event event_named(std::string_view name);

// True for AFTER_X, where algorithms run in reverse order. As in Composer, the name must begin with AFTER_:
// EVAL_AFTER_FORWARD and the like are not reversed.
bool is_after(Event event);

// False from AFTER_DATALOADER to AFTER_BACKWARD: such a step may be retried.
inline bool may_change_parameters(Event event) {
  return event < Event::kAfterDataloader || event > Event::kAfterBackward;
}

}  // namespace tutti
