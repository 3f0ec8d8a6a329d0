#pragma once

#include <memory>
#include <string>

#include "actors/job.h"
#include "runtime/recorder.h"

namespace tutti {

// Names a start: when it began, to the second, and a draw. A recipe without a seed is given one made of it.
std::string fresh_nonce();

// The folder of the journals of one start, and a rank's file in it.
std::string journal_folder(const std::string& run_dir, const std::string& nonce);
std::string journal_path(const std::string& folder, int rank);

// The folder of the newest start that left journals. Throws UserError when there is none.
std::string newest_journal(const std::string& run_dir);

// A rank's recorder as [journal] wants it: one that writes a journal, or that keeps the last happenings in
// memory only.
std::unique_ptr<Recorder> make_recorder(const Job& job, int rank, const std::string& host);

// Removes the journals of a start that was refused.
void discard_journals(const Job& job);

}  // namespace tutti
