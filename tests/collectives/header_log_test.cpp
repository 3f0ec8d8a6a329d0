#include "collectives/header_log.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(HeaderLogTest, KeepsTheLastOldestFirst) {
  HeaderLog log;
  for (int i = 0; i < 100; ++i) log.next(CollectiveKind::kAllReduce, i, "sum");
  const auto last = log.last(3);
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[0].sequence, 97u);
  EXPECT_EQ(last[2].bytes, 99u);
  EXPECT_EQ(log.last(1000).size(), static_cast<std::size_t>(HeaderLog::kKept));
}

TEST(HeaderLogTest, FindsWhatIsNeitherForgottenNorToCome) {
  HeaderLog log;
  for (int i = 0; i < 70; ++i) log.next(CollectiveKind::kBarrier, 0, "");
  EXPECT_EQ(log.find(5), nullptr);
  EXPECT_EQ(log.find(70), nullptr);
  ASSERT_NE(log.find(6), nullptr);
  EXPECT_EQ(log.find(6)->sequence, 6u);
}

TEST(HeaderLogTest, KindAndBytesMustMatchAndLabelsNeedNot) {
  HeaderLog a;
  HeaderLog b;
  EXPECT_TRUE(
      matches(a.next(CollectiveKind::kAllReduce, 8, "x"), b.next(CollectiveKind::kAllReduce, 8, "y")));
  EXPECT_FALSE(
      matches(a.next(CollectiveKind::kAllReduce, 8, ""), b.next(CollectiveKind::kAllReduce, 16, "")));
  EXPECT_FALSE(matches(a.next(CollectiveKind::kAllReduce, 8, ""), b.next(CollectiveKind::kBroadcast, 8, "")));
}

}  // namespace
}  // namespace tutti
