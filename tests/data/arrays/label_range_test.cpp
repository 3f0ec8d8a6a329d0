#include "data/label_range.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(LabelRange, LargeLabelsTakeNoMemory) {
  LabelCounter labels;
  int64_t sample = 0;
  for (const int64_t label : {int64_t{3}, int64_t{1} << 60, int64_t{1}, int64_t{3}})
    labels.add(label, sample++);
  EXPECT_EQ(labels.range().smallest, 1);
  EXPECT_EQ(labels.range().largest, int64_t{1} << 60);
  EXPECT_EQ(labels.range().sample, 1);
  EXPECT_EQ(labels.range().present, 2);
}

}  // namespace
}  // namespace tutti
