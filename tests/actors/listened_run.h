#pragma once

#include <gtest/gtest.h>

#include "commands/local_train.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {

// Trains on one rank, resuming what there is, with a callback that listens; it ends by an error where it
// `fails`.
inline void run_listened(const std::string& recipe, const std::string& run_dir,
                         const std::shared_ptr<Callback>& listener, bool fails) {
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = run_dir;
  options.resume = "auto";
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.listeners = [&](int) { return Engine::Options{.callbacks = {listener}}; };
  };
  const auto run = [&] { train_in_one_process(recipe_of(recipe), options); };
  if (!fails)
    run();
  else
    EXPECT_THROW(run(), OperatingError);
}

}  // namespace tutti
