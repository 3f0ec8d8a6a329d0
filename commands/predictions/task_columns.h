#pragma once

#include "io/tables/table_writer.h"
#include "training/state.h"

namespace tutti {

// The columns of a table for state.batch and state.outputs of an evaluation by texts; none for other data:
//   prompts   answer, reference (of several the first)
//   choices   question, choice (numbers from 0), logprob in nats, is_right (1 or 0)
WrittenRows task_columns(const State& state);

}  // namespace tutti
