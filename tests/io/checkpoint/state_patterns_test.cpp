#include "io/checkpoint/state_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;

bool fits(const std::string& pattern, const std::string& name) { return StatePatterns({pattern}).fit(name); }

TEST(StatePatterns, FitAsInComposer) {
  EXPECT_TRUE(fits("state/model/layer1*", "model/layer1.0.weight"));
  EXPECT_FALSE(fits("state/model/layer1*", "model/layer2.0.weight"));
  EXPECT_TRUE(fits("state/model/*.bias", "model/layer2.0.bias"));
  EXPECT_TRUE(fits("state/optimizers/*/exp_avg", "optimizers/fc.weight/exp_avg"));
  EXPECT_FALSE(fits("state/optimizers/*/exp_avg", "optimizers/fc.weight/step"));
}

TEST(StatePatterns, NeedNotSayState) {
  EXPECT_TRUE(fits("optimizers/*", "optimizers/fc.weight/step"));
  EXPECT_TRUE(fits("timestamp", "timestamp"));
}

TEST(StatePatterns, TakeAllThatIsBelow) {
  EXPECT_TRUE(fits("state/optimizers", "optimizers/fc.weight/step"));
  EXPECT_TRUE(fits("callbacks/EarlyStopper", "callbacks/EarlyStopper/tensor"));
  EXPECT_FALSE(fits("callbacks/Early", "callbacks/EarlyStopper"));
  EXPECT_FALSE(fits("weight", "model/fc.weight"));
}

TEST(StatePatterns, IdlePatternsAreReported) {
  const StatePatterns patterns({"model/*", "modle/*", "state/timestamp"});
  EXPECT_THAT(patterns.idle({"model/a", "timestamp"}), ElementsAre("modle/*"));
}

}  // namespace
}  // namespace tutti
