#pragma once

#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/run_state.h"

namespace tutti {

// Names a run's checkpoints by a pattern like Composer's save_filename, with placeholders for the run's name
// and times: "ep{epoch}-ba{batch}". A checkpoint is one folder for all ranks, so {rank} is no placeholder.
class CheckpointNames {
 public:
  static constexpr const char* kDefault = "ep{epoch}-ba{batch}";

  CheckpointNames() : CheckpointNames(kDefault, "") {}
  // Throws UserError for an unknown placeholder, or a name that cannot be a folder's.
  CheckpointNames(const std::string& pattern, const std::string& run_name);

  // The name of a checkpoint with this state.
  std::string at(const RunState& state) const;

  // True if no two steps of a run have the same name. `counts_tokens`: each batch has tokens.
  bool name_each_step(bool counts_tokens) const;

  // True if the name matches the pattern and the run's name, with any time and world size.
  bool fits(const std::string& name) const { return std::regex_match(name, fitting_); }
  // True if the name can be an unfinished checkpoint of the run: see `unfinished_name`.
  bool fits_unfinished(const std::string& name) const;

  // The names that fit, oldest first by the times in the names.
  std::vector<std::string> ordered(const std::vector<std::string>& names) const;

 private:
  std::vector<double> times(const std::string& name) const;  // the most precise first
  // The placeholders of which two steps with different numbers have different names.
  std::set<std::string> readable() const;

  std::string pattern_;  // with the run's name filled in
  std::vector<std::string> placeholders_;
  std::regex fitting_;
};

// The hidden name of an unpublished checkpoint. `nonce`: of the attempt that writes the checkpoint.
std::string unfinished_name(const std::string& name, const std::string& nonce);

// The name of the link to the newest checkpoint; "" = no link. Throws UserError for any placeholder but
// {run_name}.
std::string latest_name(const std::string& pattern, const std::string& run_name);

// The folder of an unpublished checkpoint.
std::string unfinished_folder(const std::string& checkpoints, const std::string& name,
                              const std::string& nonce);

}  // namespace tutti
