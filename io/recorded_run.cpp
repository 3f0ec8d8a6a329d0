#include "io/recorded_run.h"

#include <algorithm>

#include "io/journal_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {
namespace {

RecordedJob head_of(const std::string& path) {
  JournalCursor cursor(path);
  const auto record = cursor.next();
  const auto* head = record ? std::get_if<JournalHead>(&*record) : nullptr;
  if (!head) throw UserError(path + ": the journal has no head");
  return RecordedJob::from_json(head->json);
}

// Not so of a start that was killed while it waited for another to leave the folder.
bool came_to_train(const std::string& path) try {
  JournalCursor cursor(path);
  while (const auto record = cursor.next())
    if (std::holds_alternative<JournalDelivery>(*record)) return true;
  return false;
} catch (const UserError&) {
  return false;
}

}  // namespace

std::string journals_folder(const std::string& run_dir) { return run_dir + "/journal"; }

std::string journal_folder(const std::string& run_dir, const std::string& nonce) {
  return journals_folder(run_dir) + '/' + nonce;
}

std::string journal_path(const std::string& folder, int rank) {
  return folder + "/rank-" + std::to_string(rank) + ".journal";
}

// Nonces begin with the time of the start.
std::string newest_journal(const std::string& run_dir) {
  auto starts = PosixDisk().list(journals_folder(run_dir));
  if (starts.empty()) throw UserError(run_dir + ": there is no journal in it");
  const auto path = [&](const std::string& start) { return journal_folder(run_dir, start); };
  const auto newest = std::find_if(starts.rbegin(), starts.rend(), [&](const std::string& start) {
    return came_to_train(journal_path(path(start), 0));
  });
  return path(newest == starts.rend() ? starts.back() : *newest);
}

RecordedRun newest_recorded_run(const std::string& run_dir) {
  RecordedRun run{newest_journal(run_dir), {}};
  run.heads.push_back(head_of(run.path(0)));
  for (int r = 1; r < run.heads[0].world; ++r) {
    run.heads.push_back(head_of(run.path(r)));
    if (run.heads[r].nonce != run.heads[0].nonce || run.heads[r].world != run.heads[0].world)
      throw UserError(run.folder + ": the journals are not of one run");
  }
  return run;
}

}  // namespace tutti
