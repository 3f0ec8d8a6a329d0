#pragma once

#include <memory>
#include <string>

#include "io/journal/recorded_run.h"
#include "job/job.h"
#include "runtime/recorder.h"

namespace tutti {

// A name for an attempt: the time in UTC to the millisecond, and a random number. Names sort by time. A
// recipe without a seed gets a seed from the nonce.
std::string fresh_nonce();

// A rank's recorder, by [journal] level: a recorder with a journal, or a recorder that keeps the last trace
// events in memory.
std::unique_ptr<Recorder> make_recorder(const Job& job, int rank, const std::string& host);

// Removes the journals of a refused start. Errors are ignored: the reason for the refusal counts.
void discard_journals(const Job& job);

}  // namespace tutti
