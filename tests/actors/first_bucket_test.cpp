#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "actors/rank.h"
#include "collectives/agreement.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/transport.h"
#include "collectives/mpi/world.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/actor/scheduler.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr int kSteps = 40;
constexpr const char* kWideMlp = R"(
seed = 1
[model]
kind = "mlp"
hidden = [4096, 4096]
[data.train]
kind = "synthetic"
shape = [784]
device_batch_size = 32
[optimizer]
kind = "sgd"
lr = 0.01
[train]
max_duration = "40ba"
[checkpoint]
interval = "0ep"
)";

// MPI starts once in a process.
MpiWorld& mpi_world() {
  static MpiWorld world(nullptr, nullptr);
  return world;
}

// Steps in which Sync posted the first bucket before Compute's backward had ended.
int steps_with_overlap(const Recorder& recorder) {
  std::set<int64_t> early;
  int64_t over = -1;  // the last step whose backward has ended
  for (const auto& one : recorder.last(100000)) {
    if (one.kind == TraceKind::kBackwardDone) over = one.step;
    if (one.kind == TraceKind::kReduceBucket && one.detail == 0 && one.step > over) early.insert(one.step);
  }
  return static_cast<int>(early.size());
}

TEST(FirstBucketTest, LeavesBeforeBackwardEnds) {
  MpiWorld& world = mpi_world();
  const SystemClock clock;
  RankEnvironment environment;
  environment.groups = {std::make_shared<MpiGroup>(world, clock, std::vector{0, 1})};
  environment.transport = std::make_shared<MpiTransport>(world);
  environment.recorder = std::make_shared<RingRecorder>(100000);
  const Scratch folder;
  JobOptions options;
  options.world = 2;
  options.run_dir = agree(*environment.groups.front(), {.text = folder.path()})[0].text;
  options.nonce = "test";
  const Job job = make_job(resolve_recipe(parse_recipe(kWideMlp, "test.toml")), options);
  ThreadScheduler scheduler;
  add_rank(scheduler, job, environment);
  scheduler.run();
  EXPECT_GE(steps_with_overlap(*environment.recorder), 0.9 * kSteps);  // all, on an idle machine
}

// Rank 1 is there for MPI and for the agreement, and does not come to make the groups of the run.
TEST(JoinTest, ARankThatDoesNotComeIsNamedAfterTheHangTimeout) {
  MpiWorld& world = mpi_world();
  const SystemClock clock;
  MpiGroup agreeing(world, clock, {0, 1});
  RankEnvironment environment;
  environment.groups = {std::make_shared<MpiGroup>(world, clock, std::vector{0, 1})};
  agree(agreeing, {});
  environment.transport = std::make_shared<MpiTransport>(world);
  const Scratch folder;
  JobOptions options;
  options.world = 2;
  options.run_dir = folder.path();
  options.nonce = "test";
  const std::vector<std::string> overrides{"train.hang_timeout=1sec"};
  const Setting recipe = parse_recipe(kWideMlp, "test.toml", overrides);
  const Job job = make_job(resolve_recipe(recipe), options);
  if (world.rank() == 0) {
    ThreadScheduler scheduler;
    add_rank(scheduler, job, environment);
    try {
      scheduler.run();
      ADD_FAILURE() << "rank 1 was not there";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("rank 1 has not been heard for 1 s"));
    }
  }
  agree(agreeing, {});
}

}  // namespace
}  // namespace tutti
