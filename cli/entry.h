#pragma once

// What the executable asks of libtutti.so, which it opens when a command needs libtorch. Both come from one
// build.
extern "C" {

// A command line as it was understood. Texts are "" and numbers 0 where nothing was given.
struct TuttiRequest {
  const char* command;           // "train", "eval", "check" or "inspect"
  const char* path;              // the recipe; for inspect a checkpoint's or a run's folder
  const char* const* overrides;  // "a.b=v" each
  int override_count;
  const char* run_dir;     // train --run-dir
  const char* resume;      // train --resume: "auto" or a path
  const char* checkpoint;  // eval --checkpoint
  int local_ranks;         // train --local-ranks: ranks in this one process
  int ranks;               // check --ranks
  int scan_data;           // check --data
  int digest;              // inspect --digest
};

// Runs the command on this rank and returns the exit code: 0 well, 3 when the run's last checkpoint could not
// be written. Throws UserError and other exceptions, which `main` reports.
int tutti_run(const TuttiRequest* request);
}
