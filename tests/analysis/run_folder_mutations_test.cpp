// Changed files of a run's folder, given to what `ls`, `status`, `report`, `timeline`, `diff` and `inspect`
// call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/comparison/run_table.h"
#include "analysis/report/report_data.h"
#include "analysis/report/report_page.h"
#include "analysis/report/reported_run.h"
#include "analysis/run_diff.h"
#include "analysis/run_status.h"
#include "analysis/timeline.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/state_patterns.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/journal_reader.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/text.h"
#include "tests/analysis/recorded_runs.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/runtime/mutation.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr int kByDay = 100;
constexpr const char* kJournal = "journal/20260101T000000Z-00000000/rank-1.journal";
constexpr const char* kFirstJournal = "journal/20260101T000000Z-00000000/rank-0.journal";
constexpr const char* kManifest = "checkpoints/ep1-ba2/manifest.json";
constexpr const char* kFiles[] = {"recipe.toml",        "metrics.jsonl",  "result.json", ".lock",
                                  "log/rank-0.log",     kJournal,         kFirstJournal, kManifest,
                                  "checkpoints/latest", "log/rank-1.log", ".reported"};

TimePoint at_ms(int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

void write_journals(const std::string& dir) {
  const RunToRecord start{.dir = dir};
  for (int rank = 0; rank < 2; ++rank) {
    const auto writer = start.rank(rank);
    writer->delivery("sync", "supervisor", "Agree", at_ms(1));
    writer->delivery("supervisor", "sync", "Agreed", at_ms(2));
    writer->parts("sync/bucket 0", {"weight", "bias"});
    for (int64_t step = 0; step < 3; ++step) {
      writer->delivery("compute", "loader", "BatchReady", at_ms(10 * step + 10));
      writer->event({at_ms(10 * step + 11), "compute", name(TraceKind::kBatch), step, 0});
      writer->event({at_ms(10 * step + 12), "compute", name(TraceKind::kMicrobatch), step, 0});
      writer->digest("compute/loss", step, 7 + step);
      writer->digest("sync/bucket 0", step, 9, std::vector<uint16_t>{1, 2});
      writer->event({at_ms(10 * step + 14), "sync", name(TraceKind::kVerdict), step, 0});
      writer->event({at_ms(10 * step + 15), "sync", name(TraceKind::kControlSent), step, 1 - rank});
      writer->input("disk", {});
    }
    writer->end("exit code 0");
  }
}

// A run of three steps on two ranks.
void write_run(Disk& disk, const std::string& dir) {
  disk.make_folders(dir + "/log");
  write_text(
      dir + "/recipe.toml",
      "run_name = 'one'\nseed = 17\n[train]\nmax_duration = '3ep'\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n");
  write_text(dir + "/metrics.jsonl",
             "{\"step\": 1, \"epoch\": 1, \"loss\": 2.5, \"lr\": 0.1, \"step_ms\": 5.5}\n"
             "{\"step\": 2, \"epoch\": 1, \"loss\": \"nan\", \"lr\": 0.1, \"step_ms\": 5.0}\n"
             "{\"step\": 2, \"epoch\": 1, \"metrics/eval/Accuracy\": 0.5}\n"
             "{\"step\": 3, \"epoch\": 2, \"loss\": 2.25, \"lr\": 0.1, \"step_ms\": 5.0}\n");
  write_text(dir + "/result.json",
             R"({"ended": "max_duration", "reason": "max_duration of 3ep is reached", "steps": 3})");
  write_text(dir + "/.lock", "host here");
  write_text(dir + "/.reported", "20260101T000000Z-00000000");
  for (const char* rank : {"0", "1"})
    write_text(dir + "/log/rank-" + rank + ".log",
               std::string("2026-11-23 19:24:27.000 warning rank ") + rank + " step 1: <memory>\n");
  write_journals(dir);
  RunState state;
  state.run_name = "one";
  state.time.batch = 2;
  state.time.epoch = 1;
  write_checkpoint(disk, dir + "/checkpoints/ep1-ba2", {{"model/weight", at::arange(6).to(at::kFloat)}}, 2,
                   state.to_json());
  disk.symlink("ep1-ba2", dir + "/checkpoints/latest");
}

class RunFolderMutationsTest : public testing::Test {
 protected:
  RunFolderMutationsTest() {
    write_run(disk_, good_);
    write_run(disk_, run_);
    write_text(victim_, "untouched");
  }

  std::string file(const std::string& name) const { return run_ + '/' + name; }

  // The files that each command reads. The good run beside the bad one is always shown.
  void read_all(const std::string& what) {
    const auto before = facts_of_files();
    attempt(what, "ls", [&] { return list(); });
    attempt(what, "status", [&] { return status(); });
    attempt(what, "report", [&] { return report(); });
    attempt(what, "timeline", [&] {
      const std::string said = write_timeline(disk_, run_, scratch_.path("timeline.json"));
      return said + read_text(scratch_.path("timeline.json"));
    });
    attempt(what, "diff", [&] { return diff_runs(run_, good_, 0, 0).text; });
    attempt(what, "inspect", [&] { return inspect(); });
    EXPECT_EQ(facts_of_files(), before) << what << ": something was written";
    EXPECT_EQ(read_text(victim_), "untouched") << what;
  }

  // Mutated as a file; `change`: of its bytes.
  void read_mutated(
      const std::string& name,
      const std::function<std::string(const std::string& good, Mutation mutation)>& change =
          [](const std::string& good, Mutation mutation) { return mutation.of(good); }) {
    const std::string good = read_text(file(name));
    read_all(name);
    EXPECT_EQ(refused_, 0) << "the good run";
    for (int i = 0; i < mutations(kByDay); ++i) {
      const Watchdog watchdog;
      write_text(file(name), change(good, Mutation(i)));
      read_all(name + ", mutation " + std::to_string(i));
    }
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::string runs_ = scratch_.path("runs"), good_ = runs_ + "/good", run_ = runs_ + "/bad";
  std::string victim_ = scratch_.path("victim");
  int refused_ = 0;

  // Appends a record with a checksum that is right.
  void append_record(const std::string& name, JournalKind kind, const std::string& payload) const {
    JournalCursor cursor(file(name));
    while (cursor.next()) {
    }
    RecordEncoder encoder;
    encoder.begin(kind);
    encoder.raw(std::as_bytes(std::span(payload)));
    const auto record = encoder.finish(cursor.position());
    std::string bytes = read_text(file(name)).substr(0, cursor.position());
    write_text(file(name), bytes.append(record.begin(), record.end()));
  }

 private:
  void attempt(const std::string& what, const char* command, const std::function<std::string()>& read) {
    const std::string where = what + ", " + command;
    try {
      check_text(where, read());
    } catch (const RunError& error) {
      ++refused_;
      EXPECT_STRNE(command, "ls") << where << ": " << error.what();
      check_text(where, error.what());
    } catch (const std::exception& error) {
      ADD_FAILURE() << where << ": an error of another kind: " << error.what();
    }
  }

  static void check_text(const std::string& where, const std::string& text) {
    for (const char* raw : {"json.exception", "filesystem error", "::at", "std::", "basic_string", "vector<"})
      EXPECT_THAT(text, Not(HasSubstr(raw))) << where;
  }

  static std::string valid_json(const std::string& text) {
    EXPECT_TRUE(is_utf8(text));
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    return text;
  }

  std::string list() const {
    const auto runs = runs_below(runs_);
    EXPECT_EQ(runs.back().run_dir, good_);
    EXPECT_EQ(runs.back().ending.condition, RunCondition::kEnded);
    for (const RunStatus& run : runs) valid_json(run.json());
    const RunTable table(runs, {.by_headline = true});
    return table.text(0, 100) + table.csv();
  }

  std::string status() const {
    const RunStatus status = status_of(run_);
    return valid_json(status.json()) + status_text(status, 0);
  }

  std::string report() {
    write_report(disk_, {run_, good_}, scratch_.path("report.html"));
    return valid_json(report_json({read_run(disk_, run_, 1 << 20), read_run(disk_, good_, 1 << 20)}));
  }

  std::string inspect() {
    std::string text;
    const auto note = [&text](const std::string& ignored) { text += ignored + '\n'; };
    const Checkpoint checkpoint = find_checkpoint(disk_, run_, {note});
    const RunState state = RunState::from_json(checkpoint.manifest.state);
    StatePatterns(state.saved_without).fit("timestamp");
    const CheckpointTensors tensors(disk_, checkpoint);
    for (const auto& [name, entry] : tensors.entries()) text += name + '\n';
    return text + state.run_name + std::to_string(tensors_digest(tensors, "model/"));
  }

  // Of all that lies in the folder of runs.
  std::string facts_of_files() const {
    std::string facts;
    for (const auto& one : fs::recursive_directory_iterator(runs_)) {
      struct stat found {};
      ::lstat(one.path().c_str(), &found);
      facts += one.path().string() + ' ' + std::to_string(found.st_ino) + ' ' +
               std::to_string(found.st_size) + ' ' + std::to_string(found.st_mtim.tv_nsec) + '\n';
    }
    return facts;
  }
};

TEST_F(RunFolderMutationsTest, OfARecipe) { read_mutated("recipe.toml"); }
TEST_F(RunFolderMutationsTest, OfMetrics) { read_mutated("metrics.jsonl"); }
TEST_F(RunFolderMutationsTest, OfAResult) { read_mutated("result.json"); }
TEST_F(RunFolderMutationsTest, OfALock) { read_mutated(".lock"); }
TEST_F(RunFolderMutationsTest, OfALog) { read_mutated("log/rank-0.log"); }
TEST_F(RunFolderMutationsTest, OfAJournal) { read_mutated(kJournal); }
TEST_F(RunFolderMutationsTest, OfAManifest) { read_mutated(kManifest); }

// Values of another type and size: JSON whose lines, hash or checksum are right.
std::string with_other_values(const std::string& good, Mutation mutation) {
  nlohmann::ordered_json all = nlohmann::ordered_json::parse(good);
  std::vector<nlohmann::ordered_json*> values;
  const std::function<void(nlohmann::ordered_json&)> collect = [&](nlohmann::ordered_json& value) {
    values.push_back(&value);
    if (value.is_structured())
      for (auto& member : value) collect(member);
  };
  collect(all);
  static const std::vector<nlohmann::ordered_json> others = {
      nullptr, true,         -1,
      0,       INT64_MAX,    UINT64_MAX,
      1e300,   -1e300,       0.5,
      "",      "\x1b[2J",    std::string(5000, 'x'),
      {1, 2},  {{{"a", 5}}}, nlohmann::ordered_json::object()};
  const std::vector<uint64_t> drawn = mutation.numbers(2);
  *values[drawn[0] % values.size()] = others[drawn[1] % others.size()];
  return all.dump();
}

TEST_F(RunFolderMutationsTest, OfTheValuesOfAResult) { read_mutated("result.json", with_other_values); }

TEST_F(RunFolderMutationsTest, OfTheValuesOfMetrics) {
  read_mutated("metrics.jsonl", [](const std::string& good, Mutation mutation) {
    const std::size_t end = good.find('\n');
    return good + with_other_values(good.substr(0, end), mutation) + '\n';
  });
}

TEST_F(RunFolderMutationsTest, OfTheValuesOfAManifest) {
  read_mutated(kManifest, [](const std::string& good, Mutation mutation) {
    const std::string body =
        with_other_values(nlohmann::ordered_json::parse(good)["manifest"].dump(), mutation);
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
    return std::string(R"({"hash":")") + hash + R"(","manifest":)" + body + "}";
  });
}

// Records whose checksums are right, behind a head with other values or of other bytes.
TEST_F(RunFolderMutationsTest, OfRecordsOfAJournal) {
  const std::string payload("\2\1\0\2\200\200\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\7", 19);
  for (const char* name : {kFirstJournal, kJournal}) {
    const std::string good = read_text(file(name));
    for (int i = 0; i < mutations(kByDay); ++i) {
      const Watchdog watchdog;
      RecordedJob head;
      head.world = 2;
      head.nonce = "20260101T000000Z-00000000";
      head.level = JournalLevel::kFull;
      const bool changes_head = i % 3 == 0;
      {
        JournalWriter writer(file(name),
                             changes_head ? with_other_values(head.to_json(), Mutation(i)) : head.to_json());
        for (const TraceKind kind : {TraceKind::kBatch, TraceKind::kControlReceived, TraceKind::kVerdict})
          writer.event({at_ms(1), "compute", tutti::name(kind), 0, 0});
      }
      append_record(name, static_cast<JournalKind>(1 + i % 10), Mutation(i).of(payload));
      read_all(std::string(name) + ", record " + std::to_string(i));
    }
    write_text(file(name), good);
  }
}

// Links, and files that are not regular.
TEST_F(RunFolderMutationsTest, OfTheKindOfAFile) {
  const std::vector<std::function<void(const std::string&)>> replacements = {
      [](const std::string&) {},  // nothing
      [](const std::string& path) { write_text(path, ""); },
      [](const std::string& path) { fs::create_directory(path); },
      [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); },
      [this](const std::string& path) { fs::create_symlink(victim_, path); },
      [this](const std::string& path) { fs::create_symlink(scratch_.path("nowhere"), path); },
      [](const std::string& path) { fs::create_symlink(fs::path(path).filename(), path); },
      [](const std::string& path) { fs::create_symlink("/dev/zero", path); },
      [](const std::string& path) { fs::create_symlink("/", path); }};
  std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
  for (const char* folder :
       {"log", "journal", "checkpoints", "checkpoints/ep1-ba2", "checkpoints/ep1-ba2/rank-1.h5"})
    names.emplace_back(folder);
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < replacements.size(); ++i) {
      const Watchdog watchdog;
      disk_.remove_all(run_);
      fs::copy(good_, run_, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      disk_.remove_all(file(name));
      replacements[i](file(name));
      read_all(name + ", replacement " + std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace tutti
