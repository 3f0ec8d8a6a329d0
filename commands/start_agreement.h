#pragma once

#include <string>

#include "collectives/group.h"
#include "commands/train.h"
#include "job/job.h"
#include "runtime/clock.h"

namespace tutti {

// A rank's request to start: a recipe, or the reason why there is none.
struct StartRequest {
  Setting recipe;
  RunSettings settings;  // what it says
  std::string trouble;   // "" = none
  LaunchOptions options;
  std::string host;  // that this rank is on

  bool good() const { return trouble.empty(); }
  Nanoseconds timeout() const { return settings.train.hang_timeout; }  // of waiting for other ranks
};

// A request without trouble, or with the user's error of `source`.
StartRequest make_request(const RecipeSource& source, const LaunchOptions& options);

// Makes the job, the same on all ranks of the group; every rank must call this. If one rank cannot start, or
// was given another recipe than rank 0, all ranks throw the same UserError, which names the rank where only
// some are in trouble.
Job agree_on_job(const StartRequest& request, Group& group);

}  // namespace tutti
