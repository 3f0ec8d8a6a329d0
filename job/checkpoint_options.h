#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/state_patterns.h"
#include "recipe/setting.h"

namespace tutti {

// How much of the checkpoint at load_path is taken.
struct LoadOptions {
  bool weights_only = false;         // time begins at 0
  bool strict_model_weights = true;  // false: names that one of the two lacks are passed over
  StatePatterns ignored;
  std::vector<std::string> without_algorithms;  // "EMA"

  // Whether what has this name, of a tensor or a listener, is left as it is.
  bool ignores(const std::string& name) const;
};

// What a run starts from, as [checkpoint] and the command line say.
struct StartFrom {
  Setting autoresume;   // what asks for this run's newest checkpoint; none = nothing does
  Setting load_path;    // where to start from when there is none of its own; none = afresh
  LoadOptions options;  // of load_path; of its own checkpoint a run takes everything
};

// `resume` is the command line's, "" = none: a path stands in place of the recipe's, "auto" comes before it.
// Throws UserError that names both where two keys contradict each other.
StartFrom start_from(const Setting& recipe, const std::string& resume);

// Sets back to a fresh run's what of a state has a name that is forgotten: see StatePatterns.
void forget(RunState& state, const std::function<bool(const std::string& name)>& is_forgotten);
// The names that a state has besides its listeners'.
std::vector<std::string> names_in_state();

// What a checkpoint holds.
struct SaveOptions {
  bool weights_only = false;
  StatePatterns ignored;

  bool hold(const std::string& name) const;  // of a tensor
  void leave_out(RunState& state) const;     // what of it is not held, and says so
};
SaveOptions save_options(const Setting& recipe);

// What the run's checkpoints are called. Throws UserError.
CheckpointSet checkpoint_set(const Setting& recipe);

}  // namespace tutti
