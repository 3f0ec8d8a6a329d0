#include "data/streams/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "runtime/error.h"
#include "runtime/random.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::atomic<int64_t> living = 0;

struct Number final : StreamSample {
  explicit Number(int64_t value) : value(value) { ++living; }
  ~Number() override { --living; }
  void add_to(StreamedHash& hash) const override { hash.add(std::as_bytes(std::span(&value, 1))); }

  int64_t value;
};

class NumberPass final : public SamplePass {
 public:
  explicit NumberPass(std::vector<int64_t> values) : values_(std::move(values)) {}
  StreamSamplePtr next() override {
    return next_ < values_.size() ? std::make_shared<Number>(values_[next_++]) : nullptr;
  }

 private:
  std::vector<int64_t> values_;
  std::size_t next_ = 0;
};

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

StartPass numbers_below(int64_t count) {
  return [count] { return std::make_unique<NumberPass>(first_numbers(count)); };
}

int64_t value_of(const SampleStream& stream, int64_t index) {
  return static_cast<const Number&>(*stream.get(index)).value;
}

TEST(SampleStream, AnySampleIsFoundInAnyOrder) {
  for (const int64_t count : {1, 3, 16, 17, 100}) {
    const SampleStream stream({.command = "numbers", .epoch_samples = 30, .kept = 5}, numbers_below(count));
    RandomKey draws(1, "indices");
    for (uint64_t i = 0; i < 300; ++i) {
      const auto index = static_cast<int64_t>(draws.below(400, i));
      EXPECT_EQ(value_of(stream, index), index % count) << index << " of " << count;
    }
  }
}

TEST(SampleStream, NeighboursAreReadWithoutRunningTheCommandAgain) {
  const SampleStream stream({.command = "numbers", .epoch_samples = 30, .kept = 20}, numbers_below(100));
  for (int64_t i = 0; i < 80; i += 5)
    for (const int64_t ahead : {0, 19, 4}) value_of(stream, i + ahead);
  EXPECT_EQ(stream.starts(), 1);
  for (int64_t i = 94; i < 250; ++i) EXPECT_EQ(value_of(stream, i), i % 100);
  EXPECT_EQ(stream.starts(), 3) << "passes";
  value_of(stream, 229);
  EXPECT_EQ(stream.starts(), 4) << "no longer kept";
}

TEST(SampleStream, ASampleFarAheadIsNotReadThroughAllPasses) {
  int64_t read = 0;
  const SampleStream stream({.command = "numbers", .epoch_samples = 30}, [&] {
    read += 100;
    return std::make_unique<NumberPass>(first_numbers(100));
  });
  EXPECT_EQ(value_of(stream, 1'000'000'007), 7);
  EXPECT_EQ(read, 200);
}

TEST(SampleStream, WithoutEpochSamplesTheyAreCounted) {
  const SampleStream stream({.command = "numbers"}, numbers_below(1234));
  EXPECT_EQ(stream.size(), 1234);
  EXPECT_THAT(stream.advice(), HasSubstr("count its samples, 1,234, which took 0.0 s; epoch_samples = 1234"));
  EXPECT_EQ(value_of(stream, 2 * 1234 + 5), 5);
  EXPECT_EQ(SampleStream({.command = "numbers", .epoch_samples = 7}, numbers_below(1234)).advice(), "");
}

TEST(SampleStream, MemoryIsBounded) {
  const SampleStream stream({.command = "numbers", .epoch_samples = 30, .kept = 20}, numbers_below(1000));
  for (int64_t i = 0; i < 3000; ++i) {
    value_of(stream, i);
    ASSERT_LE(living, 21);
  }
}

TEST(SampleStream, EpochsAreShuffledInBlocks) {
  const SampleStream stream({.command = "numbers", .epoch_samples = 25, .shuffle_buffer = 10},
                            numbers_below(40));
  std::vector<std::vector<int64_t>> orders;
  for (const int64_t epoch : {0, 1, 2}) {
    std::vector<int64_t> order, plain;
    for (int64_t position = 0; position < 25; ++position) {
      order.push_back(stream.order(7, epoch, position, true) - 25 * epoch);
      EXPECT_EQ(order.back() / 10, position / 10);
      EXPECT_EQ(stream.order(7, epoch, position, false), 25 * epoch + position);
    }
    orders.push_back(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, first_numbers(25));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  for (int64_t i = 0; i < 10; ++i)
    if (orders[0][10 + static_cast<std::size_t>(i)] != orders[0][static_cast<std::size_t>(i)] + 10) return;
  ADD_FAILURE() << "blocks have the same order";
}

TEST(SampleStream, OtherOutputThanBeforeIsAnError) {
  const auto why = [](std::vector<int64_t> first, std::vector<int64_t> second, int64_t index) {
    auto started = std::make_shared<int>(0);
    const SampleStream stream({.command = "numbers", .epoch_samples = 5, .kept = 20}, [=] {
      return std::make_unique<NumberPass>((*started)++ == 0 ? first : second);
    });
    return message_of<StreamError>([&] {
      for (int64_t i = 0; i <= index; ++i) value_of(stream, i);
    });
  };
  std::vector<int64_t> other = first_numbers(40);
  other[30] = 31;
  EXPECT_THAT(why(first_numbers(40), other, 72),
              HasSubstr("numbers: the command's output changed: of its first 32 samples"));
  other = first_numbers(40);
  other[35] = 0;
  EXPECT_THAT(why(first_numbers(40), other, 80), HasSubstr("40 samples, and 40 others in an earlier run"));
  EXPECT_THAT(why(first_numbers(40), first_numbers(39), 80),
              HasSubstr("39 samples, and 40 in an earlier run"));
}

TEST(SampleStream, IdentityIsOfTheFirstSamples) {
  const auto digest = [](std::vector<int64_t> values, SampleStream::Options options = {.epoch_samples = 5}) {
    return SampleStream(options, [=] { return std::make_unique<NumberPass>(values); }).digest();
  };
  EXPECT_EQ(digest(first_numbers(20)), digest(first_numbers(30)));
  EXPECT_NE(digest(first_numbers(14)), digest(first_numbers(15)));
  EXPECT_NE(digest({1, 2}), digest({1, 3}));
  EXPECT_NE(digest({1, 2}), digest({1, 2}, {.epoch_samples = 6}));
  EXPECT_NE(digest({1, 2}), digest({1, 2}, {.epoch_samples = 5, .shuffle_buffer = 9}));
  EXPECT_NE(digest({1, 2}), digest({1, 2}, {.epoch_samples = 5, .identity = 9}));
}

TEST(SampleStream, NoSampleIsAnError) {
  for (const int64_t epoch_samples : {0, 5})
    EXPECT_THAT(message_of<UserError>([&] {
                  SampleStream({"numbers", epoch_samples}, numbers_below(0));
                }),
                HasSubstr("numbers: the command wrote no sample"));
}

TEST(SampleStream, ThreadsMayAskAtTheSameTime) {
  const SampleStream stream({.command = "numbers", .epoch_samples = 30, .kept = 40}, numbers_below(50));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int64_t i = thread; i < 1000; i += 4) wrong += value_of(stream, i) != i % 50;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tutti
