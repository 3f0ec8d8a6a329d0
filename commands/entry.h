#pragma once

// The interface of libtutti.so, which the executable opens for commands that need libtorch. Both are of one
// build.
extern "C" {

// A parsed command line. Missing texts are "", missing numbers 0.
struct TuttiRequest {
  const char* command;  // "train", "eval", "predict", "check", "inspect", "replay", "simulate" or "refuse"
  const char* path;     // the recipe; inspect, replay: a folder; refuse: why
  const char* const* overrides;  // "a.b=v" each
  int override_count;
  const char* run_dir;     // train, simulate --run-dir
  const char* resume;      // train --resume: "auto" or a path
  const char* checkpoint;  // eval, predict --checkpoint
  int local_ranks;         // train --local-ranks: ranks in this one process
  int json;                // train --json
  int ranks;               // check --ranks, simulate --ranks
  int scan_data;           // check --data
  int all;                 // check --all
  int steps;               // check --steps
  int digest;              // inspect --digest
  long long until;         // replay --until, a step
  long long break_at;      // replay --break-at, a step
  int rank;                // replay --rank; -1: all
  long long start;         // replay --attempt, from 1
  const char* seeds;       // simulate --seeds: "1..1000"
  const char* faults;      // simulate --faults
  int jobs;                // simulate --jobs
  int once;                // simulate --once
  int share_of;            // simulate: the number of worker processes that share the seeds; 0: run all
  const char* evaluator;   // predict --evaluator
  const char* out;         // predict --out
};

// Runs the command on this rank and returns the exit code: 0; 2 if the ranks cannot start (rank 0 prints the
// error); 3 if the last checkpoint could not be written. "refuse" passes an error of this rank's command line
// to the other ranks. Throws UserError and other exceptions, which `main` reports.
int tutti_run(const TuttiRequest* request);
}
