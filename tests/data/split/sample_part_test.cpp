#include "data/split/sample_part.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"

namespace tutti {
namespace {

using testing::ElementsAre;

// Sample i is i; an epoch begins with sample `epoch`, and goes down.
class Downwards final : public Dataset {
 public:
  explicit Downwards(int64_t count)
      : data_(TensorTree::Children{{"input", at::arange(count)}, {"target", at::arange(count) % 2}}, 2) {}
  int64_t size() const override { return data_.size(); }
  SampleSpec spec() const override { return data_.spec(); }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override {
    return data_.get(indices, epoch);
  }
  int64_t order(uint64_t, int64_t epoch, int64_t position, bool) const override {
    return (size() + epoch - position) % size();
  }
  uint64_t digest() const override { return data_.digest(); }
  std::string advice() const override { return "advice"; }

 private:
  TensorDataset data_;
};

std::vector<int64_t> samples_of_epoch(const Dataset& data, int64_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t index = data.order(1, epoch, i, /*shuffle=*/true);
    samples.push_back(data.get({&index, 1}, {})["input"].item<int64_t>());
  }
  return samples;
}

TEST(SamplePart, EpochsKeepTheOrderOfTheWhole) {
  const SamplePart part(std::make_shared<const Downwards>(10),
                        {.samples = {1, 2, 5, 8}, .follows_order = true});
  EXPECT_THAT(samples_of_epoch(part, 0), ElementsAre(8, 5, 2, 1));
  EXPECT_THAT(samples_of_epoch(part, 3), ElementsAre(2, 1, 8, 5));
  EXPECT_THAT(samples_of_epoch(part, 7), ElementsAre(5, 2, 1, 8));
  EXPECT_THAT(samples_of_epoch(part, 0), ElementsAre(8, 5, 2, 1));
}

TEST(SamplePart, OwnOrderHasEachSampleOnce) {
  const SamplePart part(std::make_shared<const Downwards>(10), {.samples = {1, 2, 5, 8}});
  EXPECT_THAT(samples_of_epoch(part, 4), testing::UnorderedElementsAre(1, 2, 5, 8));
}

TEST(SamplePart, OnePartSpeaksForTheWhole) {
  const auto whole = std::make_shared<const Downwards>(10);
  const SamplePart speaks(whole, {.samples = {1}, .speaks_for_whole = true, .note = "note"});
  const SamplePart listens(whole, {.samples = {2}});
  EXPECT_EQ(speaks.advice(), "note\nadvice");
  EXPECT_EQ(listens.advice(), "");
  EXPECT_NE(speaks.digest(), listens.digest());
}

}  // namespace
}  // namespace tutti
