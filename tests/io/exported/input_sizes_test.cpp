#include "io/exported/input_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::exported {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kGolden = TUTTI_SOURCE_DIR "/tests/golden/";

TEST(InputSizes, AProgramSaysThoseOfItsFirstInput) {
  EXPECT_THAT(input_sizes(kGolden + "exported/convnet.pt2"), ElementsAre(-1, 3, 6, 6));
}

TEST(InputSizes, OtherFilesSayNone) {
  for (const char* file : {"numpy/stored.npz", "images/rgb_19x37.png", "no.pt2"})
    EXPECT_THAT(input_sizes(kGolden + file), IsEmpty()) << file;
}

}  // namespace
}  // namespace tutti::exported
