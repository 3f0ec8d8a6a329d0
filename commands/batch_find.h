#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "recipe/toml_reader.h"

namespace tutti {

struct BatchFindOptions {
  RecipeFile recipe = {};
  int ranks = 1;
  int steps = 3;             // to try with each size
  int64_t most = 1'000'000;  // samples of a rank
};

// Steps of one size, tried or left out for lack of memory.
struct TriedBatch {
  int64_t samples = 0;       // of a rank, in one microbatch
  double samples_per_s = 0;  // of a rank
  double memory_mb = 0;      // at the peak; if left out: the forecast
  bool is_left_out = false;  // for its forecast
  std::string trouble = {};  // why the size does not fit; "" = the size fits
};

// Tries 1, 2, 4, ... samples until memory lacks or the data end, then sizes between, to within 1/16: real
// steps, as try_steps. On the CPU a rank has the recipe's memory_budget_mb, else its share of 90 percent of
// the free memory; sizes with a higher forecast are left out. `report` is called after each. Throws
// UserError, and passes on errors other than lack of memory.
std::vector<TriedBatch> try_batches(const Setting& recipe, const BatchFindOptions& options,
                                    const std::function<void(const TriedBatch&)>& report = {});

// `tutti batch-find`: prints the sizes, the largest that fits, the fastest, and the keys to set. Returns the
// exit code: 1 if not even one sample fits.
int find_batch(const Setting& recipe, const BatchFindOptions& options);

}  // namespace tutti
