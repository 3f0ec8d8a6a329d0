#pragma once

#include <string>
#include <vector>

#include "recipe/setting.h"
#include "recipe/toml_reader.h"

namespace tutti {

struct LrFindOptions {
  RecipeFile recipe = {};
  std::string run_dir;  // "" = runs/ and the recipe's run_name, "-lr-find"
  int steps = 100;      // at most
  double first = 1e-7;  // learning rate
  double last = 10;     // after all steps
  int local_ranks = 0;  // ranks in this one process; 0 = mpirun's
};

// The loss of a step with this learning rate, as measured, and its mean with earlier losses.
struct RangePoint {
  double lr = 0;
  double loss = 0;
  double smoothed = 0;
};

// Where the smoothed loss falls fastest, and a tenth of the rate of the least loss; 0 = not known.
struct SuggestedRates {
  double steepest = 0;
  double tenth_of_least = 0;
};

SuggestedRates suggested_rates(const std::vector<RangePoint>& points);

// The smoothed loss over the learning rate, in plain characters: 64 columns and 14 lines, and axes.
std::string range_plot(const std::vector<RangePoint>& points);

// Trains with a learning rate that grows from step to step, until the smoothed loss is four times its least:
// the range test of Smith 2015, arXiv:1506.01186, smoothed as fastai does. Writes the run's folder with its
// metrics, and no checkpoint. Prints curve and suggestions; returns the exit code of the training. Collective
// under mpirun.
int find_lr(const Setting& recipe, const LrFindOptions& options);

}  // namespace tutti
