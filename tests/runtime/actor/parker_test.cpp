#include <gtest/gtest.h>

#include <thread>

#include "runtime/actor/control_block.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ParkerTest : public testing::TestWithParam<Nanoseconds> {
  Watchdog watchdog_;
};

TEST_P(ParkerTest, AnUnparkThatCameBeforeIsNotLost) {
  Parker parker;
  parker.unpark();
  parker.park(kNever, GetParam());
}

TEST_P(ParkerTest, ManyUnparksCountOnce) {
  Parker parker;
  parker.unpark();
  parker.unpark();
  parker.park(kNever, GetParam());
  const TimePoint start = steady_clock::now();
  parker.park(start + milliseconds(20), GetParam());
  EXPECT_GE(steady_clock::now() - start, milliseconds(20));
}

TEST_P(ParkerTest, ReturnsAtItsDeadline) {
  Parker parker;
  for (const Nanoseconds wait : {Nanoseconds(microseconds(20)), Nanoseconds(milliseconds(3))}) {
    const TimePoint start = steady_clock::now();
    parker.park(start + wait, GetParam());
    EXPECT_GE(steady_clock::now() - start, wait);
  }
}

// A lost wake-up shows as a hang.
TEST_P(ParkerTest, TwoThreadsWakeEachOther) {
  constexpr int kRounds = 20'000;
  Parker parkers[2];
  std::atomic<int> turn{0};
  const auto play = [&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      while (turn.load() != me) parkers[me].park(kNever, GetParam());
      turn.store(1 - me);
      parkers[1 - me].unpark();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Spins, ParkerTest, testing::Values(Nanoseconds(0), Nanoseconds(microseconds(50))),
                         [](const auto& info) { return info.param.count() > 0 ? "Spinning" : "Sleeping"; });

}  // namespace
}  // namespace tutti
