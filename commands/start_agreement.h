#pragma once

#include <functional>
#include <string>

#include "collectives/group.h"
#include "job/job.h"
#include "job/make_job.h"
#include "runtime/clock.h"

namespace tutti {

// Options of `tutti train` besides the recipe.
struct LaunchOptions {
  std::string run_dir;  // "" = runs/<run_name>
  std::string resume;   // overrides the recipe, or ""
  UserComponents components = {};
  bool ends_process = true;  // if a logger hangs
  bool json = false;         // print only the result, as JSON
  int local_ranks = 0;       // ranks in this one process; 0 = mpirun's
};

// Returns the resolved recipe, or throws UserError.
using RecipeSource = std::function<Setting()>;

// A rank's request to start: a recipe, or an error.
struct StartRequest {
  Setting recipe;
  RunSettings settings;  // of the recipe
  std::string trouble;   // the error, or ""
  LaunchOptions options;
  std::string host;  // of this rank

  bool good() const { return trouble.empty(); }
  std::string run_dir() const { return run_folder(options.run_dir, settings.run_name); }
  Nanoseconds timeout() const { return settings.train.hang_timeout; }  // for other ranks
};

// Catches UserErrors of `source` as `trouble`.
StartRequest make_request(const RecipeSource& source, const LaunchOptions& options);

// Makes the job, the same on all ranks of the group. Collective. If a rank cannot start, or has another
// recipe than rank 0, all ranks throw the same UserError; the error names the rank as agreed_texts() does.
Job agree_on_job(const StartRequest& request, Group& group);

}  // namespace tutti
