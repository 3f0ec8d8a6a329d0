#pragma once

#include "actors/rank.h"

namespace tutti {

// Makes a rank one of a run that a user waits for: with a log and a journal in the job's run folder, the
// standard streams, and programs that it may start. A quiet one prints and logs nothing. Group, transport and
// host stay as they are.
void make_live(RankEnvironment& environment, const Job& job, bool quiet = false);

}  // namespace tutti
