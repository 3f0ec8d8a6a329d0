#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "analysis/timeline.h"
#include "commands/local_train.h"
#include "io/journal/journal.h"
#include "io/journal/journal_reader.h"
#include "io/journal/recorded_run.h"
#include "runtime/trace_event.h"
#include "tests/analysis/trace_arrows.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

int checkpoints_published(const std::string& run) {
  JournalCursor cursor(journal_path(recorded_start(run), 0));
  int count = 0;
  while (const auto record = cursor.next())
    if (const auto* event = std::get_if<JournalEvent>(&*record))
      count += event->kind == name(TraceKind::kPublished) ? 1 : 0;
  return count;
}

// Heartbeats, of which each rank has sent some, have none.
TEST(RecordedPacketsTest, EachPartOfACheckpointIsAnArrowToRank0AndTheEndOneFromIt) {
  const Scratch scratch;
  const std::string run = scratch.path("run"), trace = scratch.path("timeline.json");
  LocalRunOptions options;
  options.ranks = 3;
  options.run_dir = run;
  options.quiet = options.live = true;
  train_in_one_process(small_job(), options);
  PosixDisk disk;
  write_timeline(disk, run, trace);
  std::map<std::pair<int64_t, int64_t>, int> arrows;
  for (const TraceArrow& arrow : TraceArrows(trace).between_ranks) {
    ++arrows[{arrow.from.rank, arrow.to.rank}];
    EXPECT_EQ(arrow.from.thread, "sync");
    EXPECT_EQ(arrow.to.thread, "sync");
    EXPECT_EQ(arrow.from.slice, "control to rank " + std::to_string(arrow.to.rank));
    EXPECT_EQ(arrow.to.slice, "control from rank " + std::to_string(arrow.from.rank));
    EXPECT_LT(arrow.from.us, arrow.to.us) << arrow.text();
  }
  const int published = checkpoints_published(run);
  EXPECT_GT(published, 1);
  const std::map<std::pair<int64_t, int64_t>, int> expected{
      {{1, 0}, published}, {{2, 0}, published}, {{0, 1}, 1}, {{0, 2}, 1}};
  EXPECT_EQ(arrows, expected);
}

}  // namespace
}  // namespace tutti
