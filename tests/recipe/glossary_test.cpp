#include "recipe/glossary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<GlossaryEntry> read(const std::string& table) { return read_glossary("a.txt", table); }

TEST(Glossary, EntryHasNamesTextAndPlaces) {
  const auto entries = read(
      "warmup, linear warmup\n"
      "  Schedules whose learning rate begins low,\n"
      "  for t_warmup.\n"
      "  > [scheduler] kind = \"linear_with_warmup\"\n"
      "  > tutti train > log\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].names, ElementsAre("warmup", "linear warmup"));
  EXPECT_EQ(entries[0].text, "Schedules whose learning rate begins low, for t_warmup.");
  EXPECT_THAT(entries[0].places,
              ElementsAre("[scheduler] kind = \"linear_with_warmup\"", "tutti train > log"));
  EXPECT_EQ(entries[0].heading, "");
}

TEST(Glossary, PlacesMayStandBehindNames) {
  const auto entries = read("oom > grad_accum > memory_budget_mb\nrate > lr\n  a text\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_THAT(entries[0].names, ElementsAre("oom"));
  EXPECT_THAT(entries[0].places, ElementsAre("grad_accum", "memory_budget_mb"));
  EXPECT_EQ(entries[0].text, "");
  EXPECT_THAT(entries[1].places, ElementsAre("lr"));
  EXPECT_EQ(entries[1].text, "a text");
}

TEST(Glossary, NamesContinueBehindAComma) {
  const auto entries = read("a, b,\nc > place");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(entries[0].places, ElementsAre("place"));
}

TEST(Glossary, HeadingIsThatOfAllEntriesBelow) {
  const auto entries =
      read("a > x\n\n== PyTorch's ==\n# A comment.\nb > x\nc > x\n== Composer's ==\nd > x\n");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].heading, "");
  EXPECT_EQ(entries[1].heading, "PyTorch's");
  EXPECT_EQ(entries[2].heading, "PyTorch's");
  EXPECT_EQ(entries[3].heading, "Composer's");
}

TEST(Glossary, CommentsAndEmptyLinesAreIgnored) { EXPECT_THAT(read("# A comment.\n\n#\n"), IsEmpty()); }

TEST(Glossary, FaultsAreNamedWithTheirLine) {
  EXPECT_DEATH(read("a > x\n\tb\n"), "a.txt:2: a tab");
  EXPECT_DEATH(read("a > x \n"), "a.txt:1: a blank at the end");
  EXPECT_DEATH(read("  a text\n"), "a.txt:1: an indented line without names above");
  EXPECT_DEATH(read("a > x\n== Heading ==\n  a text\n"), "a.txt:3: an indented line without names above");
  EXPECT_DEATH(read("a\n   a text\n"), "a.txt:2: two blanks indent a line");
  EXPECT_DEATH(read("a\n > x\n"), "a.txt:2: ");
  EXPECT_DEATH(read("a\n  > x\n  a text\n"), "a.txt:3: text stands above the places");
  EXPECT_DEATH(read("a\nb > x\n"), "a.txt:2: the names above have neither a text nor a place");
  EXPECT_DEATH(read("b > x\na\n"), "a.txt:3: the names above have neither a text nor a place");
  EXPECT_DEATH(read("a,b > x\n"), "a.txt:1: a comma without a blank, or two commas");
  EXPECT_DEATH(read("a,, b > x\n"), "a.txt:1: a comma without a blank, or two commas");
  EXPECT_DEATH(read("a, , b > x\n"), "a.txt:1: an empty name or place");
  EXPECT_DEATH(read("a,\n\nb > x\n"), "a.txt:2: an empty name or place");
  EXPECT_DEATH(read("a, b,\n"), "a.txt:2: names end with a comma");
  EXPECT_DEATH(read("a,\n== Heading ==\nb > x\n"), "a.txt:2: a heading among names");
  EXPECT_DEATH(read("a > x\n== Heading\n"), "a.txt:2: a heading is == WORDS ==");
  EXPECT_DEATH(read("a\n  > \n"), "a.txt:2: a blank at the end");
}

}  // namespace
}  // namespace tutti
