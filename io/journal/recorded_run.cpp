#include "io/journal/recorded_run.h"

#include <algorithm>

#include "io/journal/journal_reader.h"
#include "io/json/json_text.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/trace_event.h"

namespace tutti {
namespace {

constexpr const char* kExitCode = "exit code ";  // in a journal's last record (docs/journal.md)
constexpr int kMostRanks = 1 << 16;

RecordedJob head_of(const std::string& path) try {
  JournalCursor cursor(path);
  const auto record = cursor.next();
  const auto* head = record ? std::get_if<JournalHead>(&*record) : nullptr;
  if (!head) throw OperatingError("the journal has no head, or a damaged one");
  return RecordedJob::from_json(head->json);
} catch (const OperatingError& error) {
  throw OperatingError({path}, error.message());
} catch (const UserError& error) {  // is no journal, and one was there
  if (PosixDisk().exists(path)) throw OperatingError(error.message());
  throw;
}

// False for an attempt that was killed while another one held the run folder. A damaged attempt is not passed
// over.
bool trained(const std::string& path) try {
  JournalCursor cursor(path);
  while (const auto record = cursor.next())
    if (std::holds_alternative<JournalDelivery>(*record)) return true;
  return cursor.damaged();
} catch (const UserError&) {
  return PosixDisk().exists(path);
}

// The attempt after the newest one that trained; the first of all if none did.
auto behind_newest_trained(const std::string& run_dir, const std::vector<std::string>& names) {
  return std::find_if(
             names.rbegin(), names.rend(),
             [&](const std::string& name) { return trained(journal_path(journal_folder(run_dir, name), 0)); })
      .base();
}

}  // namespace

NLOHMANN_JSON_SERIALIZE_ENUM(JournalLevel,
                             {{JournalLevel::kControl, "control"}, {JournalLevel::kFull, "full"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecordedJob, recipe, run_dir, resume, nonce, level, world,
                                                rank, host, build, cpu, device, data_digest, unix_ms,
                                                own_listeners, command, digests)

std::string RecordedJob::to_json() const { return nlohmann::json(*this).dump(); }

RecordedJob RecordedJob::from_json(const std::string& text) {
  try {
    const auto job = parse_json(text).get<RecordedJob>();
    if (job.world < 1 || job.world > kMostRanks)
      throw OperatingError("the head of the journal cannot be read: it says world = " +
                           std::to_string(job.world));
    return job;
  } catch (const nlohmann::json::exception& error) {
    throw OperatingError("the head of the journal cannot be read: " + json_problem(error));
  }
}

std::string journals_folder(const std::string& run_dir) { return run_dir + "/journal"; }

std::string journal_folder(const std::string& run_dir, const std::string& nonce) {
  return journals_folder(run_dir) + '/' + nonce;
}

std::string journal_path(const std::string& folder, int rank) {
  return folder + "/rank-" + std::to_string(rank) + ".journal";
}

// Sorting works because nonces begin with the time of the attempt's start.
std::string recorded_start(const std::string& run_dir, int64_t start) {
  const PosixDisk disk;
  if (!disk.exists(run_dir)) throw UserError(run_dir + ": there is no such folder");
  std::vector<std::string> starts = disk.list(journals_folder(run_dir));
  if (starts.empty()) throw UserError(run_dir + ": there is no journal in it");
  if (start == 0) {
    const auto behind = behind_newest_trained(run_dir, starts);
    return journal_folder(run_dir, behind == starts.begin() ? starts.back() : *(behind - 1));
  }
  starts = recorded_starts(run_dir);
  const auto count = static_cast<int64_t>(starts.size());
  if (start > count)
    throw UserError(run_dir + ": there is no attempt " + std::to_string(start) + ": it has journals of " +
                    std::to_string(count) + (count == 1 ? " attempt" : " attempts"));
  return starts[static_cast<std::size_t>(start - 1)];
}

std::vector<std::string> recorded_starts(const std::string& run_dir) {
  std::vector<std::string> folders;
  for (const std::string& name : PosixDisk().list(journals_folder(run_dir)))
    if (const std::string folder = journal_folder(run_dir, name); trained(journal_path(folder, 0)))
      folders.push_back(folder);
  return folders;
}

std::string ignored_attempts(const std::string& run_dir) {
  const std::vector<std::string> all = PosixDisk().list(journals_folder(run_dir));
  const auto behind = behind_newest_trained(run_dir, all);
  std::string folders;
  for (auto name = behind; behind != all.begin() && name != all.end(); ++name)
    folders += (folders.empty() ? "" : ", ") + journal_folder(run_dir, *name);
  return folders.empty() ? "" : "\nignored: " + folders + ": rank 0's journal has nothing of the training";
}

std::string end_text(const RankEnd& end) {
  return end.reason.empty() ? kExitCode + std::to_string(exit_code(end.kind)) : end.reason;
}

bool ended_without_error(const std::string& end_text) { return end_text.starts_with(kExitCode); }

RecordedSteps recorded_steps(const std::string& path) {
  RecordedSteps steps;
  JournalCursor cursor(path);
  while (const auto record = cursor.next()) {
    const auto* event = std::get_if<JournalEvent>(&*record);
    if (!event || event->kind != name(TraceKind::kBatch)) continue;
    steps.last = event->step + 1;
    if (steps.first == 0) steps.first = steps.last;
  }
  return steps;
}

RecordedRun recorded_run(const std::string& run_dir, int64_t start) {
  RecordedRun run{recorded_start(run_dir, start), {}};
  run.heads.push_back(head_of(run.path(0)));
  for (int r = 1; r < run.heads[0].world; ++r) {
    run.heads.push_back(head_of(run.path(r)));
    if (run.heads[r].nonce != run.heads[0].nonce || run.heads[r].world != run.heads[0].world)
      throw UserError(run.folder + ": the journals are not of one run");
  }
  return run;
}

}  // namespace tutti
