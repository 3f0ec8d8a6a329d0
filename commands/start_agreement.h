#pragma once

#include <string>

#include "collectives/group.h"
#include "commands/train.h"
#include "job/job.h"
#include "runtime/clock.h"

namespace tutti {

// A rank's request to start: a recipe, or an error.
struct StartRequest {
  Setting recipe;
  RunSettings settings;  // of the recipe
  std::string trouble;   // the error, or ""
  LaunchOptions options;
  std::string host;  // of this rank

  bool good() const { return trouble.empty(); }
  Nanoseconds timeout() const { return settings.train.hang_timeout; }  // for other ranks
};

// Catches UserErrors of `source` as `trouble`.
StartRequest make_request(const RecipeSource& source, const LaunchOptions& options);

// Makes the job, the same on all ranks of the group. Collective. If a rank cannot start, or has another
// recipe than rank 0, all ranks throw the same UserError; the error names the rank as agreed_texts() does.
Job agree_on_job(const StartRequest& request, Group& group);

}  // namespace tutti
