#pragma once

#include <memory>
#include <string>

#include "io/journal/recorded_run.h"
#include "job/job.h"
#include "runtime/clock.h"
#include "runtime/recorder.h"

namespace tutti {

// A name for an attempt of the run: the time in UTC to the millisecond, and a random number. Names sort by
// time; a clock that was set back gives a time just after the run's newest journal. A recipe without a seed
// gets a seed from the nonce. `now_ms`: since 1970.
std::string fresh_nonce(const std::string& run_dir, int64_t now_ms = SystemClock().unix_ms());

// A rank's recorder, by [journal] level: a recorder with a journal, or a recorder that keeps the last trace
// events in memory.
std::unique_ptr<Recorder> make_recorder(const Job& job, int rank, const std::string& host);

// Removes the journals of a refused start. Errors are ignored: the reason for the refusal counts.
void discard_journals(const Job& job);

}  // namespace tutti
