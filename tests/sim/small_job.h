#pragma once

#include <string>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"

namespace tutti {

// A job that takes a simulated rank next to no time: 60 samples in batches of 12, three epochs, a checkpoint
// every fourth step.
inline Setting small_job(const std::string& more = "", const std::string& train = "") {
  const std::string toml =
      "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nkind = 'synthetic'\nsamples = 60\n"
      "batch_size = 12\nshuffle = true\nshape = [6]\n[optimizer]\nkind = 'adamw'\n[train]\nmax_duration = "
      "'3ep'\nhang_timeout = '10sec'\ngrad_accum = 'auto'\n" +
      train + "[checkpoint]\ninterval = '4ba'\nkeep = 2\n";
  return resolve_recipe(parse_recipe(toml + more, "small.toml"));
}

}  // namespace tutti
