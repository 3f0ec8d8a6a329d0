#pragma once

#include <string>
#include <vector>

namespace tutti {

// Shell patterns over the names in a checkpoint, as Composer's load_ignore_keys:
//   model/<parameter or buffer>          timestamp        rank_zero_seed
//   optimizers/<parameter>/<state>       schedulers       dataset_state
//   algorithms/<name>[/<tensor>]         accumulation     metrics
//   callbacks/<name>[/<tensor>]          scaler
// A pattern that fits a name also fits all names below it, `*` matches slashes too, and Composer's prefix
// "state/" is allowed.
class StatePatterns {
 public:
  StatePatterns() = default;
  // `separator`: the text between a name and the names below.
  explicit StatePatterns(std::vector<std::string> patterns, char separator = '/');

  bool empty() const { return patterns_.empty(); }
  const std::vector<std::string>& texts() const { return patterns_; }

  bool fit(const std::string& name) const;
  // The patterns that fit none of the names.
  std::vector<std::string> idle(const std::vector<std::string>& names) const;

 private:
  bool fits(const std::string& pattern, const std::string& name) const;

  std::vector<std::string> patterns_;
  char separator_ = '/';
};

}  // namespace tutti
