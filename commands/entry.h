#pragma once

// What the executable asks of libtutti.so, which it opens when a command needs libtorch. Both come from one
// build.
extern "C" {

// A command line as it was understood. Texts are "" and numbers 0 where nothing was given.
struct TuttiRequest {
  const char* command;  // "train", "eval", "predict", "check", "inspect", "replay", "simulate" or "refuse"
  const char* path;     // the recipe; inspect, replay: a folder; refuse: why
  const char* const* overrides;  // "a.b=v" each
  int override_count;
  const char* run_dir;     // train, simulate --run-dir
  const char* resume;      // train --resume: "auto" or a path
  const char* checkpoint;  // eval, predict --checkpoint
  int local_ranks;         // train --local-ranks: ranks in this one process
  int ranks;               // check --ranks, simulate --ranks
  int scan_data;           // check --data
  int digest;              // inspect --digest
  long long until;         // replay --until, a step
  long long break_at;      // replay --break-at, a step
  int rank;                // replay --rank; -1: all
  long long start;         // replay --start, from 1
  const char* seeds;       // simulate --seeds: "1..1000"
  const char* faults;      // simulate --faults
  int jobs;                // simulate --jobs
  int once;                // simulate --once
  int share_of;            // simulate: every so many-th seed, for the process that farms them out; 0: all
  const char* evaluator;   // predict --evaluator
  const char* out;         // predict --out
};

// Runs the command on this rank and returns the exit code: 0 well, 2 when ranks that were launched together
// cannot start (rank 0 has told why), 3 when the run's last checkpoint could not be written. "refuse" tells
// the ranks that were launched with this one why it cannot start. Throws UserError and other exceptions,
// which `main` reports.
int tutti_run(const TuttiRequest* request);
}
