#pragma once

#include <memory>
#include <string>

#include "io/journal/recorded_run.h"
#include "job/job.h"
#include "runtime/recorder.h"

namespace tutti {

// Names a start: when it began, in UTC to the millisecond, and a draw; so names are in the order of time. A
// recipe without a seed is given one made of it.
std::string fresh_nonce();

// A rank's recorder as [journal] wants it: one that writes a journal, or that keeps the last trace events in
// memory only.
std::unique_ptr<Recorder> make_recorder(const Job& job, int rank, const std::string& host);

// Removes the journals of a start that was refused.
void discard_journals(const Job& job);

}  // namespace tutti
