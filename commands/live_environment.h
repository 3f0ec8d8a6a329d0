#pragma once

#include "actors/rank.h"

namespace tutti {

// Sets up the environment of a rank in a run started by a user: log and journal in the run folder, standard
// streams, child processes. `quiet`: print and log nothing. Group, transport and host do not change.
void make_live(RankEnvironment& environment, const Job& job, bool quiet = false);

}  // namespace tutti
