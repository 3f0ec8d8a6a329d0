#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// The moments of a run at which algorithms, callbacks and loggers may act: composer.core.Event, all 40. The
// whole loop, with each event in its place; what stands in lower case is done there.
//
//   INIT                              surgery: no optimizer yet, parameters may be on the meta device
//   BEFORE_LOAD
//     restore the checkpoint
//   AFTER_LOAD
//   FIT_START                         alias TRAINING_START
//   until max_duration is reached:
//     ITERATION_START                 where an iteration begins: once, unless [train] iteration_length says
//     EPOCH_START
//     for each batch:
//       BEFORE_DATALOADER             also before the look that finds the epoch over
//       AFTER_DATALOADER              a step that ran out of memory is done again from here
//       BATCH_START
//       BEFORE_TRAIN_BATCH            from here to AFTER_TRAIN_BATCH once more for each pass of a closure
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
//       --- the verdict of all ranks: until that of the last pass, nothing that lasts may be changed
//       AFTER_TRAIN_BATCH             gradients are reduced
//         optimizer.step(), schedulers, metrics, time moves on
//       BATCH_END
//         evaluators that are due
//       BATCH_CHECKPOINT
//     EPOCH_END
//       evaluators that are due
//     EPOCH_CHECKPOINT
//     ITERATION_END, ITERATION_CHECKPOINT   where an iteration has a length and has reached it
//   FIT_END                           alias TRAINING_END
//     evaluators that did not see the last step; a program's tasks, which may train on from FIT_START
//
//   A checkpoint that is due is written where the step is over: after BATCH_CHECKPOINT, EPOCH_CHECKPOINT or
//   ITERATION_CHECKPOINT, whichever is its last, and at the end after FIT_END.
//
//   An evaluation:                    EVAL_BEFORE_ALL, or of its own EVAL_STANDALONE_START
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
// By name, in any case, aliases too. Throws UserError for any other, suggesting the nearest.
Event event_named(std::string_view name);

// AFTER_X: what BEFORE_X did in one order is undone in the opposite one. EVAL_AFTER_FORWARD and its like are
// not among them: Composer's rule looks at how the name begins.
bool is_after(Event event);

}  // namespace tutti
