#include "runtime/actor/message.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace tutti {
namespace {

struct Small {
  static constexpr const char* kName = "Small";
  std::shared_ptr<int> counted;
};
struct Large {
  static constexpr const char* kName = "Large";
  std::array<int64_t, 100> numbers{};
  std::shared_ptr<int> counted;
};
struct Reserved {
  static constexpr const char* kName = "Reserved";
  static constexpr bool kReserved = true;
};

TEST(MessageTest, HoldsWhatItWasMadeFrom) {
  Message message = Small{std::make_shared<int>(7)};
  ASSERT_NE(message.get_if<Small>(), nullptr);
  EXPECT_EQ(*message.get_if<Small>()->counted, 7);
  EXPECT_EQ(message.get_if<Large>(), nullptr);
  EXPECT_STREQ(message.name(), "Small");
}

TEST(MessageTest, MovesLargeValuesWithoutCopyingThem) {
  Large large{{}, std::make_shared<int>(3)};
  large.numbers[99] = 5;
  Message first = std::move(large);
  const Large* at = first.get_if<Large>();
  Message second = std::move(first);
  EXPECT_EQ(second.get_if<Large>(), at);
  EXPECT_EQ(at->numbers[99], 5);
  EXPECT_TRUE(first.empty());
}

TEST(MessageTest, DestroysItsValueOnce) {
  const auto counted = std::make_shared<int>(0);
  {
    Message small = Small{counted};
    Message large = Large{{}, counted};
    Message moved = std::move(small);
    large = std::move(moved);
    EXPECT_EQ(counted.use_count(), 2);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(MessageTest, KnowsItsLane) {
  EXPECT_TRUE(Message(Reserved{}).reserved());
  EXPECT_FALSE(Message(Small{}).reserved());
  EXPECT_FALSE(Message().reserved());
}

}  // namespace
}  // namespace tutti
