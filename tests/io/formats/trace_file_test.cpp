#include "io/formats/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TraceFileTest, NamesHaveNoControlsAsTheyAre) {
  const Scratch scratch;
  PosixDisk disk;
  TraceFile file(disk, scratch.path("timeline.json"));
  file.name_process(1, "a\u202e\xc2\x9b");
  file.close();
  const std::string text = read_text(scratch.path("timeline.json"));
  EXPECT_THAT(text, HasSubstr("\"a\\u202e\\u009b\""));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
}

}  // namespace
}  // namespace tutti
