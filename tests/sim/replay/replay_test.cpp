#include "sim/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/journal/journal_reader.h"
#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "runtime/error.h"
#include "runtime/trace_event.h"
#include "tests/runtime/scratch.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Writes a record as it was read.
struct Copied {
  JournalWriter& to;
  void operator()(const JournalHead&) const {}
  void operator()(const JournalDelivery& one) const { to.delivery(one.to, one.from, one.message, one.time); }
  void operator()(const JournalEvent& one) const { to.event(one); }
  void operator()(const JournalDigest& one) const { to.digest(one.key, one.step, one.value, one.parts); }
  void operator()(const JournalParts& one) const { to.parts(one.key, one.names); }
  void operator()(const JournalInput& one) const { to.input(one.what, one.bytes); }
  void operator()(const JournalEnd& one) const { to.end(one.text); }
  void operator()(const JournalIncomplete&) const {}
};

// Changes a record: keeps it if true is returned, and puts written lines before it.
using Edit = std::function<bool(const JournalRecord& record, JournalWriter& to)>;

bool keep(const JournalRecord&, JournalWriter&) { return true; }

// A digest of the key, after so many steps; -1: after any number.
bool is_digest(const JournalRecord& record, std::string_view key, int64_t step = -1) {
  const auto* digest = std::get_if<JournalDigest>(&record);
  return digest && digest->key == key && (step < 0 || digest->step == step);
}

// Without what follows the digest, and without it.
Edit cut_at(std::string key, int64_t step) {
  return [key = std::move(key), step, cut = false](const JournalRecord& record, JournalWriter&) mutable {
    cut = cut || is_digest(record, key, step);
    return !cut;
  };
}

// Without the first step and what follows.
Edit cut_before_training() {
  return [cut = false](const JournalRecord& record, JournalWriter&) mutable {
    const auto* event = std::get_if<JournalEvent>(&record);
    cut = cut || (event && event->kind == name(TraceKind::kBatch));
    return !cut;
  };
}

Edit without(std::string key) {
  return
      [key = std::move(key)](const JournalRecord& record, JournalWriter&) { return !is_digest(record, key); };
}

// With a digest that no run comes to, of the step's batch.
Edit with_another(int64_t step) {
  return [step](const JournalRecord& record, JournalWriter& to) {
    if (is_digest(record, "compute/batch", step - 1)) to.digest("compute/other", step - 1, 7);
    return true;
  };
}

Edit both(Edit one, Edit other) {
  return [one = std::move(one), other = std::move(other)](const JournalRecord& record, JournalWriter& to) {
    return one(record, to) && other(record, to);
  };
}

// With another hash of the buckets.
bool with_other_buckets(const JournalRecord& record, JournalWriter& to) {
  if (!is_digest(record, "sync/bucket 0")) return true;
  const auto& digest = std::get<JournalDigest>(record);
  to.digest(digest.key, digest.step, digest.value ^ 1, digest.parts);
  return false;
}

ReplayOptions until(int64_t step) { return {.until = step}; }
ReplayOptions break_at(int64_t step) { return {.break_at = step}; }
ReplayOptions of_rank(int rank) { return {.rank = rank}; }

// A recorded run of two ranks and fifteen steps, whose journals a test changes.
class ChangedRecordTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    recorded_ = std::make_unique<Scratch>();
    LocalRunOptions options;
    options.run_dir = recorded_->path("run");
    options.quiet = options.live = true;
    train_in_one_process(small_job(), options);
  }
  static void TearDownTestSuite() { recorded_.reset(); }

  void SetUp() override {
    std::filesystem::copy(recorded_->path("run"), run_, std::filesystem::copy_options::recursive);
  }

  std::string journal(int rank) const { return journal_path(recorded_start(run_), rank); }

  void change(int rank, Edit edit, const std::function<void(RecordedJob&)>& change_head = {}) const {
    const std::string path = journal(rank), made = path + ".new";
    {
      JournalCursor from(path);
      auto record = from.next();
      RecordedJob head = RecordedJob::from_json(std::get<JournalHead>(*record).json);
      if (change_head) change_head(head);
      JournalWriter to(made, head.to_json());
      while ((record = from.next()))
        if (edit(*record, to)) std::visit(Copied{to}, *record);
    }
    std::filesystem::rename(made, path);
  }

  ReplayResult replayed(ReplayOptions options = {}) const {
    options.run_dir = run_;
    return replay(options);
  }
  void expect_same(const ReplayOptions& options = {}) const {
    const ReplayResult result = replayed(options);
    EXPECT_TRUE(result.same) << result.text;
    EXPECT_THAT(result.text, StartsWith("replayed 2 ranks, "));
  }
  void expect_difference(const std::string& text, const ReplayOptions& options = {}) const {
    const ReplayResult result = replayed(options);
    EXPECT_FALSE(result.same) << result.text;
    EXPECT_EQ(result.text, text);
  }

  static inline std::unique_ptr<Scratch> recorded_;
  Scratch scratch_;
  std::string run_ = scratch_.path("run");
};

TEST_F(ChangedRecordTest, AJournalThatWasCopiedRecordByRecordIsTheSame) {
  const ReplayResult before = replayed();
  for (const int rank : {0, 1}) change(rank, keep);
  const ReplayResult after = replayed();
  EXPECT_TRUE(after.same) << after.text;
  EXPECT_EQ(after.text, before.text);
}

TEST_F(ChangedRecordTest, ADigestThatTheRecordLacksIsADifference) {
  change(1, without("sync/bucket 0"));
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same) << result.text;
  EXPECT_THAT(result.text, StartsWith("rank 1, step 1, sync, after "));
  EXPECT_THAT(result.text, EndsWith(": bucket 0 is not in the record"));
  expect_same(of_rank(0));
}

TEST_F(ChangedRecordTest, ADigestThatTheReplayDoesNotComeToIsADifference) {
  change(1, both(with_another(5), with_another(3)));
  const std::string difference =
      "rank 1, step 3, compute: other is in the record, and the replay does not reach it";
  expect_difference(difference);
  expect_difference(difference, until(3));
  expect_difference(difference, break_at(4));
  expect_difference(difference, of_rank(1));
}

TEST_F(ChangedRecordTest, RecordsOutsideTheReplayedPartAreNotMissed) {
  change(1, with_another(3));
  expect_same(until(2));
  expect_same(break_at(3));
  expect_same(of_rank(0));
}

// As of a run that was killed in its eighth step.
TEST_F(ChangedRecordTest, AMissingEntryBehindTheEndOfARecordIsNoDifference) {
  std::filesystem::remove_all(run_ + "/checkpoints");
  change(0, cut_at("compute/batch", 8));
  change(1, both(with_another(8), cut_at("compute/loss", 7)));
  const ReplayResult result = replayed();
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr("; rank 0 was not replayed further; "));
  EXPECT_THAT(result.text, HasSubstr("; the record of rank 1 ends in step 8"));
}

TEST_F(ChangedRecordTest, ATornLastRecordOfAKilledRankIsNoDifference) {
  std::filesystem::remove_all(run_ + "/checkpoints");
  for (const int rank : {0, 1}) {
    change(rank, cut_at("compute/loss", 7));
    std::string bytes = read_text(journal(rank));
    bytes.resize(bytes.size() - 3);
    write_text(journal(rank), bytes + std::string(4096, '\0'));
  }
  const ReplayResult result = replayed();
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr("the record of rank 1 ends in step 8, where it is torn"));
}

TEST_F(ChangedRecordTest, BehindDamageNothingIsEqual) {
  for (const std::size_t eighth : {1, 2, 3, 4, 5, 6, 7}) {
    const int rank = static_cast<int>(eighth % 2);
    const std::string bytes = read_text(journal(rank));
    JournalCursor cursor(journal(rank));
    cursor.next();  // the head
    flip_bit(journal(rank), cursor.position() + (bytes.size() - cursor.position()) * eighth / 8);
    const ReplayResult result = replayed();
    EXPECT_FALSE(result.same) << result.text;
    EXPECT_THAT(result.text,
                StartsWith("the record of rank " + std::to_string(rank) + " cannot be read beyond step "));
    EXPECT_THAT(result.text, HasSubstr("; up to there: replayed 2 ranks, "));
    write_text(journal(rank), bytes);
  }
}

TEST_F(ChangedRecordTest, BehindACutNothingIsEqual) {
  const auto beyond_eight = [](int rank) {
    return StartsWith("the record of rank " + std::to_string(rank) +
                      " cannot be read beyond step 8, and the run came to step 15; up to there: replayed 2");
  };
  change(1, cut_at("compute/loss", 7));
  const ReplayResult of_one = replayed();
  EXPECT_FALSE(of_one.same);
  EXPECT_THAT(of_one.text, beyond_eight(1)) << "by the other rank's record";
  change(0, cut_at("compute/loss", 7));
  const ReplayResult of_both = replayed();
  EXPECT_FALSE(of_both.same);
  EXPECT_THAT(of_both.text, beyond_eight(0)) << "by the run's checkpoints";
}

TEST_F(ChangedRecordTest, ARecordThatWasCutBeforeItsFirstStepIsADifferenceWhereCheckpointsShowSteps) {
  for (const int rank : {0, 1}) change(rank, cut_before_training());
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same) << result.text;
  EXPECT_THAT(result.text,
              StartsWith("the record of rank 0 cannot be read beyond step 0, and the run came to "
                         "step 15; up to there: replayed 2 ranks, "));
  std::filesystem::remove_all(run_ + "/checkpoints");
  expect_same();
}

TEST_F(ChangedRecordTest, AResumedRecordThatEndsBeforeItsFirstStepIsADifferenceIfMoreWasSavedSince) {
  Setting recipe = small_job();
  recipe.find("train")->find("max_duration")->value = std::string("4ep");
  LocalRunOptions options;
  options.run_dir = run_;
  options.quiet = options.live = true;
  options.resume = "auto";
  train_in_one_process(recipe, options);
  for (const int rank : {0, 1}) change(rank, cut_before_training());
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr(", and the run came to step 20; up to there: replayed 2 ranks, "));
  std::filesystem::remove_all(run_ + "/checkpoints/ep4-ba20");
  std::filesystem::remove_all(run_ + "/checkpoints/ep3-ba16");
  expect_same();
}

TEST_F(ChangedRecordTest, ANewestAttemptCutWithinItsHeadIsADifferenceIfItSaved) {
  const std::string head = read_text(journal(0)).substr(0, 1000);
  const std::string later = journals_folder(run_) + "/29991231T235959.999Z-00000000";
  std::filesystem::create_directory(later);
  for (const std::size_t bytes : {0, 12, 50, 1000}) {
    write_text(journal_path(later, 0), head.substr(0, bytes));
    const ReplayResult killed_at_once = replayed();
    EXPECT_TRUE(killed_at_once.same) << killed_at_once.text;
    EXPECT_THAT(killed_at_once.text, HasSubstr("\nignored: " + later + ": rank 0's journal "));
  }
  const std::string saved = run_ + "/checkpoints/ep4-ba20";
  std::filesystem::copy(run_ + "/checkpoints/ep3-ba15", saved);
  CheckpointManifest manifest = read_manifest(PosixDisk(), saved);
  RunState state = RunState::from_json(manifest.state);
  state.time.batch = 20;
  manifest.state = state.to_json();
  write_text(saved + "/manifest.json", manifest.to_json());
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same) << result.text;
  EXPECT_THAT(result.text,
              StartsWith("the record of a later attempt is lost: the run came to step 20, and the "
                         "newest attempt with a record to step 15; up to there: replayed 2 ranks, "));
  EXPECT_THAT(result.text, HasSubstr("\nignored: " + later));
}

// Nor is an earlier attempt replayed in its place.
TEST_F(ChangedRecordTest, ADamagedHeadIsDamage) {
  const std::string folder = recorded_start(run_);
  const std::string later = journals_folder(run_) + "/29991231T235959.999Z-00000000";
  std::filesystem::copy(folder, later);
  constexpr std::size_t kInHead = 100;
  for (const int rank : {1, 0}) {
    flip_bit(journal_path(later, rank), kInHead);
    EXPECT_EQ(message_of<OperatingError>([this] { replayed(); }),
              journal_path(later, rank) + ": the journal has no head, or a damaged one");
  }
}

TEST_F(ChangedRecordTest, ALastCheckpointThatIsDamagedIsADifference) {
  const std::string folder = run_ + "/checkpoints/ep3-ba15";
  flip_bit(folder + "/rank-1.h5", 2000);
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same);
  EXPECT_THAT(result.text, StartsWith("the run's checkpoint is damaged: " + folder + "/rank-1.h5"));
  expect_same(until(15));
  std::filesystem::remove_all(folder);
  expect_same();
}

// Of good files, as another run would have saved them.
TEST_F(ChangedRecordTest, ALastCheckpointOfOtherWeightsIsADifference) {
  const std::string folder = run_ + "/checkpoints/ep3-ba15";
  CheckpointManifest manifest = read_manifest(PosixDisk(), folder);
  RankFile& file = manifest.files[1];
  const auto write_manifest = [&] { write_text(folder + "/manifest.json", manifest.to_json()); };
  flip_bit(folder + '/' + file.file, file.pieces.at(2).at);
  const std::string bytes = read_text(folder + '/' + file.file);
  file.hash = XXH3_64bits(bytes.data(), bytes.size());
  write_manifest();
  const ReplayResult result = replayed();
  EXPECT_FALSE(result.same);
  EXPECT_THAT(result.text, StartsWith(folder + " is not what the replay saves there: rank-1.h5 differs in " +
                                      file.pieces[2].name + "; replayed 2 ranks, "));
  RunState state = RunState::from_json(manifest.state);
  state.time.total_wct += 1;
  manifest.state = state.to_json();
  write_manifest();
  const ReplayResult of_another = replayed();
  EXPECT_TRUE(of_another.same);
  EXPECT_THAT(of_another.text, EndsWith("; " + folder + " is of another attempt of the run"));
}

TEST_F(ChangedRecordTest, AMissingEntryBeforeTheEndOfARecordIsADifference) {
  change(1, both(without("compute/loss"), cut_at("sync/bucket 0", 7)));
  expect_difference("rank 1, step 1, compute, after BatchReady: loss is not in the record");
}

TEST_F(ChangedRecordTest, AnExtraEntryBeforeTheEndOfARecordIsADifference) {
  change(1, both(with_another(7), cut_at("compute/loss", 7)));
  expect_difference("rank 1, step 7, compute: other is in the record, and the replay does not reach it");
}

TEST_F(ChangedRecordTest, AMessageBehindTheEndOfTheReplayIsADifference) {
  change(1, [](const JournalRecord& record, JournalWriter& to) {
    if (std::holds_alternative<JournalEnd>(record)) to.delivery("compute", "supervisor", "Stop", TimePoint());
    return true;
  });
  expect_difference("rank 1, compute: the record continues with Stop from supervisor, which does not arrive");
}

// With what older journals have of logs; the log metrics.jsonl hangs.
Edit with_logs() {
  return [began = false](const JournalRecord& record, JournalWriter& to) mutable {
    if (std::holds_alternative<JournalEnd>(record)) {
      to.delivery("progress", "supervisor", "Stop", TimePoint());
      to.end("exit code 0 without metrics.jsonl");
      return false;
    }
    const auto* event = std::get_if<JournalEvent>(&record);
    if (!event || event->kind != name(TraceKind::kBatch)) return true;
    for (const char* log : {"metrics.jsonl", "progress"})
      to.delivery(log, "compute", began ? "Logged" : "LogFrom", TimePoint());
    for (const char* input : {"room for logs", "logs asked", "logs written"})
      to.input(input, std::as_bytes(std::span("01", 2)));
    began = true;
    return true;
  };
}

TEST_F(ChangedRecordTest, MessagesOfLogsAreNoDifference) {
  change(0, with_logs());
  const ReplayResult result = replayed();
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, Not(HasSubstr("the record of")));
}

// The event says that a step begins, the digest of its batch comes next.
TEST_F(ChangedRecordTest, AStepBehindTheEndOfAnyRanksRecordIsRefused) {
  change(1, cut_at("compute/batch", 4));
  const auto error = [this](const ReplayOptions& options) {
    return message_of<UserError>([&] { replayed(options); });
  };
  EXPECT_EQ(error(break_at(12)), "--break-at step=12: the record of rank 1 breaks off in step 5");
  EXPECT_EQ(error(until(6)), "--until step=6: the record of rank 1 breaks off in step 5");
  EXPECT_EQ(error(until(16)), "--until step=16: the record of this attempt has steps 1 to 15");
  EXPECT_FALSE(std::filesystem::exists(run_ + "/replay-step-12"));
  expect_same(until(5));
  const ReplayResult result = replayed(break_at(5));
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr("the state before step 5 is in " + run_ + "/replay-step-5"));
  change(0, cut_at("compute/weights", 0));
  EXPECT_EQ(error(until(5)), "--until step=5: the record of rank 0 breaks off before its first step");
}

// No look at the record beforehand shows it: the steps are in it, but not what leads there.
TEST_F(ChangedRecordTest, AStepThatWasNotComeToIsADifference) {
  bool silent = false;
  change(1, [&silent](const JournalRecord& record, JournalWriter&) {
    silent = silent || is_digest(record, "compute/batch", 4);
    const bool tells =
        std::holds_alternative<JournalDelivery>(record) || std::holds_alternative<JournalEnd>(record);
    return !silent || !tells;
  });
  for (const ReplayOptions& options : {break_at(12), until(12)}) {
    const ReplayResult result = replayed(options);
    EXPECT_FALSE(result.same) << result.text;
    EXPECT_THAT(result.text, StartsWith("step 12 was not reached: rank 0 was replayed to step 5 only ("));
  }
}

TEST_F(ChangedRecordTest, AStateThatCannotBeWrittenIsADifference) {
  write_text(run_ + "/replay-step-3", "a file, where a folder is to be");
  const ReplayResult result = replayed(break_at(3));
  EXPECT_FALSE(result.same) << result.text;
  EXPECT_THAT(result.text,
              StartsWith("the state before step 3 cannot be written: " + run_ + "/replay-step-3"));
}

// True if it was put aside, or is there again and good.
TEST(ReplayTest, ADamagedCheckpointIsRejectedAgain) {
  const Scratch folder;
  Setting recipe = small_job();
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  options.quiet = options.live = true;
  train_in_one_process(recipe, options);
  const std::string checkpoints = options.run_dir + "/checkpoints", damaged = checkpoints + "/ep3-ba15";
  flip_bit(damaged + "/rank-1.h5", 2000);
  options.resume = "auto";
  recipe.find("train")->find("max_duration")->value = std::string("4ep");
  train_in_one_process(recipe, options);
  ReplayOptions again;
  again.run_dir = options.run_dir;
  const ReplayResult without = replay(again);
  EXPECT_TRUE(without.same) << without.text;
  std::filesystem::rename(checkpoints + "/earlier/ep3-ba15", damaged);
  flip_bit(damaged + "/rank-1.h5", 2000);
  const ReplayResult with_good = replay(again);
  EXPECT_TRUE(with_good.same) << with_good.text;
}

// The numbers of one rank are in the sums of all.
TEST_F(ChangedRecordTest, BitsAreNotComparedWhereOneRankWasOnAnotherProcessor) {
  change(1, keep, [](RecordedJob& head) { head.cpu = "OTHER"; });
  change(0, with_other_buckets);
  const ReplayResult result = replayed();
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr(" losses, all equal to a tolerance\nrank 1 computed with OTHER, this "
                                     "machine with "));
}

TEST_F(ChangedRecordTest, DigestsOfAnotherKindAreNotCompared) {
  change(0, with_other_buckets, [](RecordedJob& head) { head.digests = ""; });
  const ReplayResult result = replayed();
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr(" losses, all equal to a tolerance\nthe record has digests of another "
                                     "kind than this tutti, "));
}

}  // namespace
}  // namespace tutti
