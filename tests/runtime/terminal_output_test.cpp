#include "runtime/terminal_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "tests/runtime/scratch.h"
#include "tests/runtime/stalled_pipe.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kManyLines = 5000;  // more bytes than are kept

std::string numbered(int number) { return std::to_string(number) + std::string(90, 'x') + "\n"; }

TEST(TerminalOutputTest, AStalledReaderLosesWholeLinesWhichAreCounted) {
  StalledPipe pipe;
  TerminalOutput out(pipe.out);
  for (int i = 0; i < kManyLines; ++i) out.print(numbered(i));
  EXPECT_TRUE(out.busy());
  EXPECT_EQ(out.trouble(),
            std::to_string(kManyLines) + " lines were not shown: the reader of the output is too slow");
  EXPECT_EQ(pipe.read(), "");
  out.flush();
  std::string shown = pipe.read();
  out.flush();
  shown += pipe.read();
  EXPECT_FALSE(out.busy());
  std::istringstream lines(shown);
  int kept = 0;
  for (std::string line; std::getline(lines, line); ++kept) EXPECT_EQ(line + "\n", numbered(kept));
  EXPECT_GT(kept, 500);
  EXPECT_THAT(out.trouble(), StartsWith(std::to_string(kManyLines - kept) + " lines were not shown"));
}

TEST(TerminalOutputTest, LastWordsHaveRoomWhateverWaits) {
  StalledPipe pipe;
  TerminalOutput out(pipe.out);
  for (int i = 0; i < kManyLines; ++i) out.print(numbered(i));
  out.print_last("the end\n");
  std::string shown;
  for (int i = 0; i < 100 && out.busy(); ++i, out.flush()) shown += pipe.read();
  EXPECT_THAT(shown + pipe.read(), HasSubstr("x\nthe end\n"));
}

TEST(TerminalOutputTest, AReaderThatIsGoneEndsNothing) {
  StalledPipe pipe;
  TerminalOutput out(pipe.out);
  out.print("before\n");
  pipe.close_reader();
  out.print("after\n");
  EXPECT_FALSE(out.busy());
}

TEST(TerminalOutputTest, AFileHasAllInItsOrder) {
  const Scratch folder;
  std::FILE* file = std::fopen(folder.path("out").c_str(), "w");
  std::fputs("by another\n", file);
  TerminalOutput out(file);
  std::string all = "by another\n";
  for (int i = 0; i < kManyLines; ++i) out.print(numbered(i));
  for (int i = 0; i < kManyLines; ++i) all += numbered(i);
  std::fclose(file);
  EXPECT_EQ(read_text(folder.path("out")), all);
  EXPECT_EQ(out.trouble(), "");
}

TEST(TerminalOutputTest, WithoutAStreamNothingIsShown) {
  TerminalOutput out(nullptr);
  out.print("nobody\n");
  out.print_last("nobody\n");
  EXPECT_FALSE(out.shown() || out.busy());
}

}  // namespace
}  // namespace tutti
