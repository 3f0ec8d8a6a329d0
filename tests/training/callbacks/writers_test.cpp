#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"
#include "tests/training/callbacks/by_hand.h"
#include "training/callbacks/writers/export_for_inference.h"
#include "training/callbacks/writers/file_names.h"
#include "training/callbacks/writers/memory_files.h"
#include "training/callbacks/writers/profiler.h"
#include "training/callbacks/writers/weights_file.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Callbacks that write into a run's folder.
class Writing : public WithOptimizer {
 protected:
  Writing() { state_.run_dir = folder_.path("run"); }
  bool is_there(const std::string& name) const { return disk_.exists(state_.run_dir + "/" + name); }
  std::string text(const std::string& name) const { return read_text(state_.run_dir + "/" + name); }

  Scratch folder_;
  PosixDisk disk_;
};

TEST_F(Writing, NamesAreFilledInWithinTheRunsFolder) {
  state_.run_name = "digits";
  state_.topology.rank = 3;
  state_.timestamp.epoch = 2;
  state_.timestamp.batch = 17;
  EXPECT_EQ(file_name(state_, "a/{run_name}-{rank}.{epoch}.{batch}.{batch}"),
            state_.run_dir + "/a/digits-3.2.17.17");
  EXPECT_EQ(file_name(state_, "/tmp/{rank}"), "/tmp/3");
}

// As composer.profiler.cyclic_schedule decides.
TEST(Profiler, RecordsInCycles) {
  using enum ProfilerAction;
  ProfilerOptions schedule;
  schedule.skip_first = 2, schedule.wait = 1, schedule.warmup = 1, schedule.active = 2, schedule.repeat = 2;
  const auto actions = [&] {
    std::vector<ProfilerAction> all;
    for (int64_t batch = 0; batch < 12; ++batch) all.push_back(action_at(schedule, batch));
    return all;
  };
  EXPECT_THAT(actions(), ElementsAre(kSkip, kSkip, kSkip, kWarmUp, kRecord, kRecordAndSave, kSkip, kWarmUp,
                                     kRecord, kRecordAndSave, kSkip, kSkip));
  schedule.repeat = 0;
  EXPECT_EQ(actions().at(11), kWarmUp);
}

TEST_F(Writing, OomObserverReportsTheUseOfMemory) {
  optimizer("decoupled_adamw");
  OomObserver observer(disk_, {"memory", "rank{rank}_oom.txt", false});
  observer.out_of_memory(state_, logged_, "step 3: rank 0 ran out of memory");
  EXPECT_THAT(text("memory/rank0_oom.txt"),
              AllOf(HasSubstr("step 3: rank 0 ran out"), HasSubstr("parameters 12\n"),
                    HasSubstr("optimizer 40\n")));  // two moments of three floats, and the count of steps
  observer.out_of_memory(state_, logged_, "step 4");
  EXPECT_THAT(text("memory/rank0_oom-2.txt"), HasSubstr("step 4"));
}

TEST_F(Writing, OlderFilesAreOverwrittenOnRequest) {
  OomObserver observer(disk_, {"memory", "oom.txt", true});
  observer.out_of_memory(state_, logged_, "step 3");
  observer.out_of_memory(state_, logged_, "step 4");
  EXPECT_THAT(text("memory/oom.txt"), HasSubstr("step 4"));
  EXPECT_EQ(disk_.list(state_.run_dir + "/memory").size(), 1u);
}

TEST_F(Writing, MemorySnapshotKeepsItsInterval) {
  MemorySnapshot snapshots(disk_, {"memory", "{batch}.txt", false}, Time(3, TimeUnit::kBatch), 4);
  for (int i = 0; i < 10; ++i) batch(snapshots, 1.0);
  EXPECT_THAT(disk_.list(state_.run_dir + "/memory"), ElementsAre("6.txt", "9.txt"));
  EXPECT_THAT(text("memory/6.txt"), HasSubstr("after batch 6"));
}

TEST_F(Writing, AFolderThatCannotBeMadeEndsNoTraining) {
  write_text(folder_.path("run"), "a file");
  MemorySnapshot snapshots(disk_, {"memory", "{batch}.txt", false}, Time(1, TimeUnit::kBatch), 0);
  EXPECT_NO_THROW(batch(snapshots, 1.0));
}

TEST_F(Writing, WeightsAreExportedAtTheEndAndOnTheWay) {
  const auto weight = std::make_shared<Parameter>();
  const auto mean = std::make_shared<Buffer>();
  weight->tensor = at::ones({2});
  mean->tensor = at::full({3}, 0.5);
  state_.parameters = {{"bn.weight", weight}};
  state_.buffers = {{"bn.running_mean", mean}};
  ExportForInference exporter(disk_, "export/{epoch}.safetensors", Time(2, TimeUnit::kEpoch));
  for (int epoch = 0; epoch < 3; ++epoch) {
    batch(exporter, 1.0);
    end_epoch(exporter);
  }
  EXPECT_THAT(disk_.list(state_.run_dir + "/export"), ElementsAre("2.safetensors"));
  weight->tensor = at::full({2}, 7.0);
  exporter.run_event(Event::kFitEnd, state_, logged_);
  const auto found = read_weights(state_.run_dir + "/export/3.safetensors");
  EXPECT_THAT(found, UnorderedElementsAre(testing::Key("bn.weight"), testing::Key("bn.running_mean")));
  EXPECT_TRUE(found.at("bn.weight").equal(weight->tensor));
  EXPECT_TRUE(found.at("bn.running_mean").equal(mean->tensor));
}

TEST_F(Writing, WeightsOfHalfTheBitsKeepTheirIntegers) {
  const auto weight = std::make_shared<Parameter>();
  const auto count = std::make_shared<Buffer>();
  weight->tensor = at::full({2}, 257.0);
  count->tensor = at::scalar_tensor(257, at::kLong);
  state_.parameters = {{"bn.weight", weight}};
  state_.buffers = {{"bn.num_batches_tracked", count}};
  const std::string path = folder_.path("half.safetensors");
  write_weights_file(state_, disk_, path, at::kBFloat16);
  const auto found = read_weights(path);
  ASSERT_EQ(found.at("bn.num_batches_tracked").scalar_type(), at::kLong);
  EXPECT_EQ(found.at("bn.num_batches_tracked").item<int64_t>(), 257);
  EXPECT_TRUE(found.at("bn.weight").equal(at::full({2}, 256.0, at::kBFloat16)));
}

TEST_F(Writing, WeightsAreExportedByRankZeroAlone) {
  state_.topology.rank = 1;
  ExportForInference(disk_, "model.safetensors", Time(0, TimeUnit::kBatch))
      .run_event(Event::kFitEnd, state_, logged_);
  EXPECT_FALSE(is_there("model.safetensors"));
}

}  // namespace
}  // namespace tutti
