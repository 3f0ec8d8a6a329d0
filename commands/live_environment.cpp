#include "commands/live_environment.h"

#include "job/records/run_journal.h"
#include "job/records/run_report.h"
#include "runtime/launcher.h"

namespace tutti {

void make_live(RankEnvironment& environment, const Job& job, bool quiet) {
  const int rank = environment.rank();
  environment.recorder = make_recorder(job, rank, environment.host);
  if (!quiet) environment.log = make_log(rank_log_path(job.run_dir, rank), rank, rank == 0);
  environment.live = true;
  environment.after_interrupt = after_interrupt();
  environment.quiet = quiet;
  environment.process_started_s = process_started_s();
  environment.start_child = start_child;
  environment.open_http = open_http;
}

}  // namespace tutti
