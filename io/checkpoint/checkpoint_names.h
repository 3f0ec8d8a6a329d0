#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "io/checkpoint/run_state.h"

namespace tutti {

// What a run's checkpoints are called: a pattern like Composer's save_filename, with the run's name and times
// in braces, "ep{epoch}-ba{batch}". A checkpoint is one folder for all ranks, so no rank is part of its name.
class CheckpointNames {
 public:
  static constexpr const char* kDefault = "ep{epoch}-ba{batch}";

  CheckpointNames() : CheckpointNames(kDefault, "") {}
  // Throws UserError: a placeholder that there is not, or a name that is none of a folder.
  CheckpointNames(const std::string& pattern, const std::string& run_name);

  // Of the checkpoint that holds this state.
  std::string at(const RunState& state) const;

  // Whether a run of this pattern and name can have written it, whatever its time and world.
  bool fits(const std::string& name) const { return std::regex_match(name, fitting_); }
  // Whether it can be what a killed run left half written: see `unfinished_name`.
  bool fits_unfinished(const std::string& name) const;

  // Names that fit, oldest first as far as they tell their time.
  std::vector<std::string> ordered(const std::vector<std::string>& names) const;

 private:
  std::vector<double> times(const std::string& name) const;  // the most telling one first

  std::string pattern_;  // the run's name put in
  std::vector<std::string> placeholders_;
  std::regex fitting_;
};

// What a checkpoint is called until it is whole, by the start that writes it: hidden.
std::string unfinished_name(const std::string& name, const std::string& nonce);

// The name of the link to the newest checkpoint; "" = there is none. Throws UserError: it moves on from one
// to the next, so no time is part of its name.
std::string latest_name(const std::string& pattern, const std::string& run_name);

// Where a checkpoint is written until it is whole.
std::string unfinished_folder(const std::string& checkpoints, const std::string& name,
                              const std::string& nonce);

}  // namespace tutti
