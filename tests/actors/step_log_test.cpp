#include "actors/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(StepLogTest, AMetricThatIsLoggedTwiceHasItsLastValueInItsFirstPlace) {
  StepLog log(true);
  log.log_metrics({{"a", 1}, {"b", 2}});
  log.log_metrics({{"c", 3}, {"a", 4}});
  EXPECT_THAT(log.take(), ElementsAre(Pair("a", 4), Pair("b", 2), Pair("c", 3)));
}

TEST(StepLogTest, WhatWasTakenIsForgotten) {
  StepLog log(true);
  log.log_metrics({{"a", 1}, {"b", 2}});
  log.take();
  EXPECT_THAT(log.take(), IsEmpty());
  log.log_metrics({{"b", 3}});
  EXPECT_THAT(log.take(), ElementsAre(Pair("b", 3)));
}

TEST(StepLogTest, NothingIsKeptWhereNobodyReadsIt) {
  StepLog log(false);
  log.log_metrics({{"a", 1}});
  EXPECT_THAT(log.take(), IsEmpty());
}

}  // namespace
}  // namespace tutti
