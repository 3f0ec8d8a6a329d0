#pragma once

#include <string>
#include <vector>

namespace tutti {

// Patterns of a shell over the names of what a checkpoint holds, as Composer's load_ignore_keys:
//   state/model/<parameter or buffer>          state/timestamp        state/rank_zero_seed
//   state/optimizers/<parameter>/<state>       state/schedulers       state/dataset_state
//   state/algorithms/<name>[/<tensor>]         state/accumulation     state/metrics
//   state/callbacks/<name>[/<tensor>]          state/scaler
// A pattern that fits a name takes all below it too, `*` goes across slashes, and "state/" may be left out.
class StatePatterns {
 public:
  StatePatterns() = default;
  explicit StatePatterns(std::vector<std::string> patterns);

  bool empty() const { return patterns_.empty(); }
  const std::vector<std::string>& texts() const { return patterns_; }

  // `name` is such a name without "state/", or a checkpoint's own one of a tensor:
  // "optimizer/fc.weight/exp_avg".
  bool fit(const std::string& name) const;
  // Those that fit none of the names.
  std::vector<std::string> idle(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace tutti
