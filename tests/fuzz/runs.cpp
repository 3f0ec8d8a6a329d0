// Files of a run's folder, read as `ls`, `status`, `report`, `timeline` and `diff` do.
#include <cstring>
#include <filesystem>
#include <memory>

#include "analysis/profiler_traces.h"
#include "analysis/report/report_data.h"
#include "analysis/report/reported_run.h"
#include "analysis/run_diff.h"
#include "analysis/run_status.h"
#include "analysis/timeline.h"
#include "io/formats/event_file.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/journal_reader.h"
#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "io/json/json_line.h"
#include "io/line_file.h"
#include "runtime/disk.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

TimePoint at_ms(int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

RecordedJob head_of(int rank) {
  RecordedJob head;
  head.recipe = "seed = 17\n";
  head.level = JournalLevel::kFull;
  head.nonce = "20260101T000000Z-00000000";
  head.world = 2;
  head.rank = rank;
  return head;
}

std::string journal_name(const std::string& run, int rank) {
  return journal_path(journal_folder(folder() + '/' + run, head_of(0).nonce), rank);
}

void write_journal(const std::string& run, int rank) {
  JournalWriter writer(journal_name(run, rank), head_of(rank).to_json());
  writer.delivery("sync", "supervisor", "Agree", at_ms(1));
  writer.parts("sync/bucket 0", {"weight", "bias"});
  for (int64_t step = 0; step < 3; ++step) {
    writer.delivery("compute", "loader", "BatchReady", at_ms(10 * step + 10));
    writer.event({at_ms(10 * step + 11), "compute", name(TraceKind::kBatch), step, 0});
    writer.event({at_ms(10 * step + 12), "compute", name(TraceKind::kMicrobatch), step, 0});
    writer.digest("compute/loss", step, 7 + step);
    writer.event({at_ms(10 * step + 14), "sync", name(TraceKind::kVerdict), step, 0});
  }
  writer.end("exit code 0");
}

std::string write_run(const std::string& run) {
  write_file(run + "/recipe.toml", "run_name = 'one'\nseed = 17\n[train]\nmax_duration = '3ep'\n");
  write_file(run + "/metrics.jsonl", "{\"step\": 1, \"epoch\": 1, \"loss\": 2.5, \"lr\": 0.1}\n");
  write_file(run + "/result.json", R"({"ended": "max_duration", "reason": "", "steps": 3})");
  write_file(run + "/.lock", "host here");
  write_file(run + "/log/rank-0.log", "2026-11-23 19:24:27.000 warning rank 0 step 1: memory\n");
  PosixDisk().make_folders(journal_folder(folder() + '/' + run, head_of(0).nonce));
  for (const int rank : {0, 1}) write_journal(run, rank);
  return folder() + '/' + run;
}

// Of the run in folder()/run.
void read_run_folder() {
  PosixDisk disk;
  const std::string run = folder() + "/run";
  read_or_refuse([&] {
    const RunStatus status = status_of(run);
    status.json();
    status_text(status, 0);
  });
  read_or_refuse([&] { report_json({read_run(disk, run, 1 << 20)}); });
}

void replace_in_run(const std::string& name, const std::string& bytes) {
  static const std::string run = write_run("run");
  write_file("run/" + name, bytes);
  read_run_folder();
}

void read_journal(const std::string& path) {
  read_or_refuse([&] {
    JournalCursor cursor(path);
    while (const auto record = cursor.next()) {
      if (const auto* head = std::get_if<JournalHead>(&*record))
        read_or_refuse([&] { RecordedJob::from_json(head->json); });
    }
    cursor.torn_bytes();
    cursor.damaged();
  });
}

void replace_journal(const std::string& bytes) {
  static const std::string run = write_run("run"), good = write_run("good");
  const std::string path = journal_name("run", 1);
  write_file(path.substr(folder().size() + 1), bytes);
  read_journal(path);
  PosixDisk disk;
  read_or_refuse([&] { diff_runs(run, good); });
  read_or_refuse([&] { write_timeline(disk, run, folder() + "/timeline.json"); });
  read_run_folder();
}

}  // namespace

void journal(const std::string& bytes) { replace_journal(bytes); }

// Records whose checksums are right, behind a head: each is a byte with its kind, one with its length, and
// the payload.
void journal_records(const std::string& bytes) {
  const auto preamble = journal_preamble();
  std::string file(preamble.begin(), preamble.end());
  RecordEncoder encoder;
  const auto append = [&](JournalKind kind, const std::string& payload) {
    encoder.begin(kind);
    encoder.raw(std::as_bytes(std::span(payload)));
    const auto record = encoder.finish(file.size());
    file.append(record.begin(), record.end());
  };
  append(JournalKind::kHead, head_of(1).to_json());
  for (std::size_t at = 0; at + 2 <= bytes.size();) {
    const auto kind = static_cast<JournalKind>(bytes[at] & 15);
    const std::size_t length = static_cast<uint8_t>(bytes[at + 1]);
    append(kind, bytes.substr(at + 2, length));
    at += 2 + length;
  }
  replace_journal(file);
}

void metrics(const std::string& bytes) {
  replace_in_run("metrics.jsonl", bytes);
  PosixDisk disk;
  const std::string path = write_file("metrics.jsonl", bytes);
  const auto step_of = [](const std::string& line) { return json_integer(line, "step", -1); };
  read_or_refuse([&] {
    for (const std::string& line : LineFile(disk, path, step_of, [](const std::string&) {}).resume(2))
      for (const auto& key : json_keys(line))
        read_or_refuse([&] {
          json_number(line, key);
          json_numbers(line, key);
        });
  });
}

void result(const std::string& bytes) { replace_in_run("result.json", bytes); }
void log_lines(const std::string& bytes) { replace_in_run("log/rank-0.log", bytes); }

// Of a run without other files.
void profiler_trace(const std::string& bytes) {
  PosixDisk disk;
  write_file("profiled/recipe.toml", "[profiler]\nfolder = 'traces'\n");
  write_file("profiled/traces/rank-0.json", bytes);
  TraceFile trace(disk, folder() + "/drawn.json");
  const auto track = [](int rank, int64_t i) { return TraceFile::Track{rank, i}; };
  read_or_refuse([&] {
    draw_profiler_traces(disk, folder() + "/profiled", {at_ms(1), at_ms(2)}, track, trace);
  });
  trace.close();
}

void event_file(const std::string& bytes) {
  const PosixDisk disk;
  const std::string path = write_file("events", bytes);
  read_or_refuse([&] {
    records_of_step(disk, {path}, 2);
    for (const ShownRecord& one : images_and_texts(disk, {path})) {
      if (disk.read_range(path, one.offset, one.bytes).size() != one.bytes)
        throw std::logic_error("a record behind the end of its file");
    }
  });
}

}  // namespace tutti::fuzz
