#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_catalog.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/state_patterns.h"
#include "recipe/setting.h"
#include "training/settings.h"

namespace tutti {

struct BestSettings : BestKeys {
  bool less_is_better = false;

  // Reads a resolved table.
  static BestSettings read(const Setting& table, const Setting& recipe);
  bool better(double value, double other) const { return less_is_better ? value < other : value > other; }
};

// The best values of a run so far, at most BestSettings::keep.
class BestValues {
 public:
  explicit BestValues(BestSettings settings) : settings_(std::move(settings)) {}

  // A new step: nothing is measured.
  void begin_step() { state_.measured = false; }
  // The metric after this step. True if among the best.
  bool observe(double value);

  const BestState& state() const { return state_; }
  void restore(const BestState& state) { state_ = state; }

 private:
  BestSettings settings_;
  BestState state_;
};

// The names of the best checkpoints, best first; the earlier of equals first. `values`: the metric after the
// step of each checkpoint, by name, in the order of time.
std::vector<std::string> best_checkpoints(const BestSettings& settings,
                                          const std::vector<std::pair<std::string, double>>& values);

// The parts of the checkpoint at load_path to restore.
struct LoadOptions {
  bool weights_only = false;         // time begins at 0
  bool strict_model_weights = true;  // false: ignore names that the model or the checkpoint lacks
  StatePatterns ignored;
  std::vector<std::string> without_algorithms;  // "EMA"

  // True if the tensor or listener of this name is not restored.
  bool ignores(const std::string& name) const;
};

// The checkpoint that a run starts from, by [checkpoint] and the command line.
struct StartFrom {
  Setting autoresume;   // the setting that asks for this run's newest checkpoint, or none
  Setting load_path;    // the checkpoint to start from if the run has no own; none = a fresh start
  LoadOptions options;  // of load_path; a run restores all of its own checkpoint
};

// `resume`: of the command line, or "". A path replaces the recipe's load_path, "auto" takes precedence over
// load_path. Throws UserError with both keys if two keys contradict each other.
StartFrom start_from(const Setting& recipe, const std::string& resume);

// Resets the named parts of a state to the parts of a fresh run: see StatePatterns.
void forget(RunState& state, const std::function<bool(const std::string& name)>& is_forgotten);
// The names of all parts of a state but its listeners.
std::vector<std::string> names_in_state();

// The parts of the state to save.
struct SaveOptions {
  bool weights_only = false;
  StatePatterns ignored;

  bool saves(const std::string& name) const;   // of a tensor
  void remove_unsaved(RunState& state) const;  // and records the removal in the state
};

// [checkpoint], with its interval in epochs if it is in iterations; see StartFrom for where a run begins.
struct CheckpointSettings : CheckpointKeys {
  Given<std::string> remote_folder;  // a save_folder of a remote store, which save_folder is not then; or ""
  CheckpointSet set;
  SaveOptions save;
  std::optional<BestSettings> best;

  // Throws UserError for invalid names of checkpoints.
  static CheckpointSettings read(const Setting& recipe, const TrainSettings& train);
};

}  // namespace tutti
