#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "recipe/toml_reader.h"
#include "sim/simulate/progress_watch.h"
#include "sim/simulate/simulation.h"
#include "tests/sim/planted_bugs/broken_group.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

TimePoint at_second(int64_t s) { return TimePoint(std::chrono::seconds(s)); }

TEST(ProgressWatchTest, AStallBeginsWithTheLastStepOrTheLastEffectOfAFault) {
  ProgressWatch watch(std::chrono::seconds(5));
  EXPECT_FALSE(watch.stalls(at_second(5)));
  watch.progress(at_second(5));
  EXPECT_FALSE(watch.stalls(at_second(10)));
  watch.disturb(at_second(20));
  watch.disturb(at_second(12));
  EXPECT_FALSE(watch.stalls(at_second(25)));
  EXPECT_TRUE(watch.stalls(at_second(26)));
  EXPECT_FALSE(watch.stalls(at_second(27))) << "a stall is reported once";
  EXPECT_EQ(watch.since(), at_second(20));
  watch.progress(at_second(28));
  EXPECT_TRUE(watch.stalls(at_second(34)));
  EXPECT_EQ(watch.longest(), std::chrono::seconds(8));
  watch.disturb(kNever);
  EXPECT_FALSE(watch.stalls(at_second(1000)));
}

// A collective that is looked at ever less often, and so is taken for unfinished long after its end.
class LooksEverLessOften final : public Work {
 public:
  explicit LooksEverLessOften(WorkPtr below) : below_(std::move(below)) {}
  bool done() override {
    if (++polls_ < next_) return false;
    next_ *= 4;
    return below_->done();
  }
  const CollectiveHeader& header() const override { return below_->header(); }
  bool finite() const override { return below_->finite(); }

 private:
  WorkPtr below_;
  int64_t polls_ = 0, next_ = 1;
};

class BacksOffWithoutEnd final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    return std::make_unique<LooksEverLessOften>(below_->all_reduce(inout, label));
  }
};

Findings findings_of(const std::string& fault, const SimSeams& seams) {
  Setting job = small_job();
  job.find("train")->find("hang_timeout")->value = std::string("1000sec");
  const std::string plan = "starts = 1\n[[fault]]\nstep = 2\nphase = 'batch'\n" + fault;
  const Simulation simulation(job, 3, make_fault_plan(parse_recipe(plan, "plan.toml"), 3), seams);
  return simulation.run(1).findings;
}

// The run recovers after a long time, and violates no other invariant.
TEST(LivenessTest, AWakeUpThatIsLostAfterAHeldLinkIsFound) {
  const std::string cut = "kind = 'cut'\nrank = 1\nto = 2\nseconds = 60\n";
  const SimSeams bug = group_bug<BacksOffWithoutEnd>()();
  EXPECT_THAT(findings_of(cut, {}), IsEmpty());
  const Findings stalls = findings_of(cut, bug);
  EXPECT_THAT(stalls, Each(HasSubstr("nothing followed step")));
  ASSERT_FALSE(stalls.empty());
  EXPECT_THAT(stalls.front(), HasSubstr("in attempt 1 nothing followed step 2 though all was well from 6"));
  EXPECT_THAT(stalls.front(), HasSubstr("rank 2 stood still the longest, since step 1, backward done, 6"));
  EXPECT_THAT(findings_of("kind = 'cut'\nrank = 1\nto = 2\nseconds = 0.01\n", bug), IsEmpty());
}

}  // namespace
}  // namespace tutti
