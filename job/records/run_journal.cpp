#include "job/records/run_journal.h"

#include <ATen/Version.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "io/journal/journal_writer.h"
#include "recipe/command_keys.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/process/this_process.h"
#include "tensors/digests.h"

namespace tutti {
namespace {

RecordedJob head_of(const Job& job, int rank, const std::string& host) {
  RecordedJob head;
  head.recipe = job.recipe_text;
  head.run_dir = job.run_dir;
  head.resume = job.resume;
  head.nonce = job.nonce;
  head.level = job.settings.journal.level;
  head.world = job.world;
  head.rank = rank;
  head.host = host;
  head.build = build_and_commit("tutti");
  head.cpu = at::get_cpu_capability();
  if (job.devices) head.device = job.devices->device(rank, 0).name;
  head.data_digest = job.data_digest;
  head.unix_ms = SystemClock().unix_ms();
  head.own_listeners = job.listeners || !job.tasks.empty();
  head.command = command_line(with_command_name);
  head.digests = kDigestKind;
  return head;
}

// None if the folder cannot be read: who writes a journal there is refused.
std::vector<std::string> names_of_journals(const std::string& run_dir) try {
  return PosixDisk().list(journals_folder(run_dir));
} catch (const OperatingError&) {
  return {};
}

// 0 if the name is no nonce.
int64_t time_of_nonce_ms(const std::string& name) {
  std::tm utc{};
  const char* milliseconds = strptime(name.c_str(), "%Y%m%dT%H%M%S.", &utc);
  return milliseconds ? 1000 * static_cast<int64_t>(timegm(&utc)) + std::atoi(milliseconds) : 0;
}

}  // namespace

std::string fresh_nonce(const std::string& run_dir, int64_t now_ms) {
  for (const std::string& name : names_of_journals(run_dir))
    now_ms = std::max(now_ms, time_of_nonce_ms(name) + 1);
  const auto now = static_cast<std::time_t>(now_ms / 1000);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y%m%dT%H%M%S", &utc);
  std::snprintf(text + length, sizeof text - length, ".%03dZ-%08x", static_cast<int>(now_ms % 1000),
                std::random_device()());
  return text;
}

std::unique_ptr<Recorder> make_recorder(const Job& job, int rank, const std::string& host) {
  if (job.settings.journal.level == JournalLevel::kOff) return std::make_unique<RingRecorder>();
  const std::string folder = journal_folder(job.run_dir, job.nonce);
  PosixDisk().make_folders(folder);
  return std::make_unique<JournalRecorder>(journal_path(folder, rank), head_of(job, rank, host));
}

void discard_journals(const Job& job) try {
  PosixDisk().remove_all(journal_folder(job.run_dir, job.nonce));
} catch (const OperatingError&) {
}

}  // namespace tutti
