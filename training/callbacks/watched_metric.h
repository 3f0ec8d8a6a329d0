#pragma once

#include <string>

#include "recipe/setting.h"
#include "training/state.h"

namespace tutti {

// A metric by which a run is stopped, and which of two values is the better one.
class WatchedMetric {
 public:
  struct Options {
    Setting monitor;               // "MulticlassAccuracy"; blamed for errors
    std::string dataloader_label;  // "eval"
    // "greater", "gt", "less", "lt"; "": less of a loss, error, perplexity or cross entropy.
    std::string comp;
  };

  explicit WatchedMetric(Options options);

  // Throws UserError where the model measures no such thing in its evaluations.
  void require(const State& state) const;

  // Whether the events that come now are of its data.
  bool is_of(const State& state) const { return state.dataloader_label == options_.dataloader_label; }
  double value(const State& state) const;  // UserError where there is none
  bool better(double one, double other, const State& state) const;

 private:
  Options options_;
  bool greater_, composers_greater_;  // are better
};

}  // namespace tutti
