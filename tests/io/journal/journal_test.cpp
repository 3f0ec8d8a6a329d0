#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "runtime/error.h"
#include "tests/io/journal/journal_lines.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TimePoint tick(int64_t ticks) { return TimePoint(Nanoseconds(100 * ticks)); }

class JournalTest : public testing::Test {
 protected:
  // One of every kind.
  void write_sample() {
    JournalWriter writer(path_, "{\"seed\": 7}");
    writer.delivery("compute", "", "Start", tick(1'000'000) + Nanoseconds(99));
    writer.delivery("compute", "loader", "BatchReady", tick(1'000'003));
    writer.event({tick(1'000'001), "compute", "forward", 3, -1});
    writer.parts("gradient", {"weight", "", "bias"});
    writer.digest("gradient", 3, 0xFEDCBA9876543210, std::vector<uint16_t>{65535, 0, 258});
    writer.digest("loss", -1, 0);
    writer.input("clock", std::as_bytes(std::span("\0\377", 2)));
    writer.input("disk", {});
    writer.event({tick(0), "sync", "verdict", kLeast, kMost});
    writer.end("done");
    ASSERT_EQ(writer.incomplete(), "");
  }

  // Where the sample's records end; the lines it has.
  void read_sample() {
    write_sample();
    bytes_ = read_text(path_);
    JournalCursor cursor(path_);
    while (const auto record = cursor.next()) {
      sample_.push_back(line_of(*record));
      ends_.push_back(cursor.position());
    }
    ASSERT_EQ(sample_.size(), 11u);
  }
  size_t whole_before(size_t byte) const {
    return std::upper_bound(ends_.begin(), ends_.end(), byte) - ends_.begin();
  }
  std::vector<std::string> first_of_sample(size_t count) const {
    return {sample_.begin(), sample_.begin() + static_cast<ptrdiff_t>(count)};
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("journal-0");
  std::string bytes_;
  std::vector<std::string> sample_;
  std::vector<size_t> ends_;
};

TEST_F(JournalTest, EveryKindIsReadAsItWasWritten) {
  write_sample();
  EXPECT_THAT(
      lines_of(path_),
      ElementsAre("head {\"seed\": 7}", "delivery compute< Start @1000000",
                  "delivery compute<loader BatchReady @1000003", "event compute forward 3 -1 @1000001",
                  "parts gradient weight  bias", "digest gradient 3 18364758544493064720 65535 0 258",
                  "digest loss -1 0", "input clock 0 255", "input disk",
                  "event sync verdict " + std::to_string(kLeast) + " " + std::to_string(kMost) + " @0",
                  "end done"));
}

// Put together by docs/journal.md.
// A logger that hung in its run may come back.
TEST_F(JournalTest, TheEndIsTheLastRecord) {
  JournalWriter writer(path_, "{}");
  writer.end("done");
  writer.delivery("compute", "loader", "BatchReady", tick(1));
  writer.event({tick(2), "compute", "forward", 3, -1});
  std::vector<std::string> lines;
  JournalCursor cursor(path_);
  while (const auto record = cursor.next()) lines.push_back(line_of(*record));
  EXPECT_THAT(lines, ElementsAre(testing::_, HasSubstr("done")));
}

TEST_F(JournalTest, BytesAreThoseOfTheSpecification) {
  {
    JournalWriter writer(path_, "{}");
    writer.delivery("b", "", "b", tick(-65));
  }
  std::string bytes("tuttijnl\1\0\0\0", 12);
  const auto append = [&bytes](const std::string& record) {
    const uint64_t sum = XXH3_64bits_withSeed(record.data(), record.size(), bytes.size());
    bytes += record + static_cast<char>(sum) + static_cast<char>(sum >> 8);
  };
  append("\1\3\2{}");
  append(std::string("\2\2\1b", 4));
  append(std::string("\2\1\0", 3));
  append(std::string("\3\5\0\1\0\201\1", 7));  // -65 by zigzag is 129
  EXPECT_EQ(read_text(path_), bytes);
}

TEST_F(JournalTest, NamesGoByContentWhereverTheyStand) {
  {
    JournalWriter writer(path_, "{}");
    for (const std::string text : {"sync", "loader", "sync"}) {
      char reused[8] = {};
      text.copy(reused, sizeof reused);
      writer.event({tick(0), std::string_view(reused, text.size()), text, 0, 0});
    }
    for (int i = 0; i < 1000; ++i) writer.input("name " + std::to_string(i), {});
    for (int i = 0; i < 1000; ++i) writer.input("name " + std::to_string(i), {});
  }
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2004u);
  EXPECT_THAT(std::vector(lines.begin() + 1, lines.begin() + 4),
              ElementsAre("event sync sync 0 0 @0", "event loader loader 0 0 @0", "event sync sync 0 0 @0"));
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(lines[4 + i], "input name " + std::to_string(i % 1000));
}

TEST_F(JournalTest, RecordsLargerThanAStretchAndManyStretchesAreWhole) {
  std::string large(3 << 20, 'x');
  {
    JournalWriter writer(path_, large);
    for (int i = 0; i < 500'000; ++i) writer.event({tick(i), "compute", "forward", i, 0});
    large += "y";
    writer.end(large);
    EXPECT_EQ(writer.incomplete(), "");
  }
  EXPECT_GT(std::filesystem::file_size(path_), 10u << 20);
  JournalCursor cursor(path_);
  EXPECT_EQ(std::get<JournalHead>(*cursor.next()).json.size(), large.size() - 1);
  for (int i = 0; i < 500'000; ++i) {
    const auto record = cursor.next();
    ASSERT_TRUE(record);
    const auto& one = std::get<JournalEvent>(*record);
    ASSERT_EQ(one.step, i);
    ASSERT_EQ(one.time, tick(i));
  }
  EXPECT_EQ(std::get<JournalEnd>(*cursor.next()).text, large);
  EXPECT_FALSE(cursor.next());
}

TEST_F(JournalTest, SpaceTakenAheadIsNotTornAndIsGivenBack) {
  std::optional<JournalWriter> writer(std::in_place, path_, "{}");
  writer->end("done");
  const uint64_t written = writer->bytes();
  EXPECT_GT(std::filesystem::file_size(path_), written);
  JournalCursor cursor(path_);
  EXPECT_EQ(lines_of(cursor).size(), 2u);
  EXPECT_EQ(cursor.position(), written);
  EXPECT_EQ(cursor.torn_bytes(), 0u);
  writer.reset();
  EXPECT_EQ(std::filesystem::file_size(path_), written);
  EXPECT_FALSE(cursor.next());
}

TEST_F(JournalTest, CutAnywhereItKeepsTheRecordsBefore) {
  read_sample();
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    write_text(path_, bytes_.substr(0, size));
    JournalCursor cursor(path_);
    ASSERT_EQ(lines_of(cursor), first_of_sample(whole_before(size))) << size;
    const auto last = bytes_.substr(cursor.position(), size - cursor.position()).find_last_not_of('\0');
    ASSERT_EQ(cursor.torn_bytes(), last == std::string::npos ? 0 : last + 1) << size;
    ASSERT_FALSE(cursor.damaged()) << size;
  }
}

TEST_F(JournalTest, ZerosFromAnywhereKeepTheRecordsBefore) {
  read_sample();
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    if (size > 0 && size < 12) continue;  // a begun preamble is written whole
    write_text(path_, bytes_.substr(0, size) + std::string(5000, '\0'));
    JournalCursor cursor(path_);
    ASSERT_EQ(lines_of(cursor), first_of_sample(whole_before(size))) << size;
    ASSERT_FALSE(cursor.damaged()) << "a killed writer leaves this, " << size;
  }
}

TEST_F(JournalTest, AFlippedBitEndsTheRecordsBeforeIt) {
  read_sample();
  for (size_t bit = 0; bit < 8 * bytes_.size(); ++bit) {
    std::string flipped = bytes_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_text(path_, flipped);
    if (bit / 8 < 12) {
      EXPECT_THROW(JournalCursor{path_}, UserError) << bit;
      continue;
    }
    JournalCursor cursor(path_);
    ASSERT_EQ(lines_of(cursor), first_of_sample(whole_before(bit / 8))) << bit;
    ASSERT_GT(cursor.torn_bytes(), 0u) << bit;
    const bool is_in_the_last = whole_before(bit / 8) + 1 == sample_.size();
    ASSERT_TRUE(is_in_the_last || cursor.damaged()) << bit;
  }
}

TEST_F(JournalTest, BytesThatAreGoneFromTheMiddleAreDamage) {
  read_sample();
  write_text(path_, bytes_.substr(0, ends_[4] + 3) + std::string(ends_[7] - ends_[4] - 3, '\0') +
                        bytes_.substr(ends_[7]));
  JournalCursor cursor(path_);
  EXPECT_EQ(lines_of(cursor), first_of_sample(5));
  EXPECT_TRUE(cursor.damaged());
}

TEST_F(JournalTest, GarbageBehindTheEndIsReportedByPlaceAndSize) {
  read_sample();
  write_text(path_, bytes_ + std::string(100'000, '\0') + "garbage" + std::string(100'000, '\0'));
  JournalCursor cursor(path_);
  EXPECT_EQ(lines_of(cursor), sample_);
  EXPECT_EQ(cursor.position(), bytes_.size());
  EXPECT_EQ(cursor.torn_bytes(), 100'007u);
}

TEST_F(JournalTest, ARecordAtAnotherPlaceIsNone) {
  read_sample();
  const std::string last = bytes_.substr(ends_[9]);
  write_text(path_, bytes_ + last);
  JournalCursor cursor(path_);
  EXPECT_EQ(lines_of(cursor), sample_);
  EXPECT_EQ(cursor.torn_bytes(), last.size());
}

// Each with a checksum that is right.
TEST_F(JournalTest, PayloadsThatAreNotWhatTheirKindSaysAreNoRecords) {
  {
    JournalWriter writer(path_, "{}");
    writer.input("disk", {});  // name 0
  }
  const std::string begin = read_text(path_);
  for (const std::string& payload : {
           std::string("\3\0\0\1\0", 5),                      // a delivery with a name that was not given
           std::string("\3\0\0\0", 4),                        // one without a time
           std::string("\3\0\0\0\200", 5),                    // one whose time has no end
           std::string("\3\0\0\0", 4) + std::string(11, -1),  // one whose time is too long
           std::string("\10\5x"),                             // a text that is longer than the payload
           std::string("\10\1xy"),                            // one that is shorter
           std::string("\2\5"),                               // the same for a name
           std::string("\5\0\0of hash8\377\377\377\377\377\377\377\7", 19),  // parts without number
           std::string("\6\0\377\377\377\377\377\377\377\7", 10),            // names without number
           std::string("\52\0", 2),                                          // an unknown kind
       }) {
    const std::string record =
        payload.substr(0, 1) + static_cast<char>(payload.size() - 1) + payload.substr(1);
    const uint64_t sum = XXH3_64bits_withSeed(record.data(), record.size(), begin.size());
    write_text(path_, begin + record + static_cast<char>(sum) + static_cast<char>(sum >> 8));
    JournalCursor cursor(path_);
    EXPECT_THAT(lines_of(cursor), ElementsAre("head {}", "input disk")) << testing::PrintToString(payload);
    EXPECT_EQ(cursor.position(), begin.size());
  }
}

TEST_F(JournalTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(message_of<UserError>([&] { JournalCursor{path_}; }), HasSubstr(path_ + ": cannot be read"));
  EXPECT_THAT(message_of<UserError>([&] { JournalCursor{scratch_.path("")}; }), HasSubstr("is a folder"));
  write_text(path_, "seed = 7\nworld = 2\n");
  EXPECT_THAT(message_of<UserError>([&] { JournalCursor{path_}; }), HasSubstr(path_ + ": is no journal"));
  write_text(path_, "tuttijnx");
  EXPECT_THAT(message_of<UserError>([&] { JournalCursor{path_}; }), HasSubstr("offset 0"));
  write_text(path_, std::string("tuttijnl\2\1\0\0{}", 14));
  EXPECT_THAT(message_of<UserError>([&] { JournalCursor{path_}; }),
              testing::AllOf(HasSubstr(path_), HasSubstr("version 258"), HasSubstr("offset 8")));
}

// The user named a run: what lies in a journal's place is damage of the run.
TEST_F(JournalTest, InARunWhatIsNoJournalIsDamage) {
  const std::string run = scratch_.path("run"),
                    path = journal_path(journal_folder(run, "20260101T000000"), 0);
  std::filesystem::create_directories(journal_folder(run, "20260101T000000"));
  EXPECT_THROW(recorded_run(run), UserError) << "it is missing";
  write_sample();
  std::filesystem::copy_file(path_, path);
  EXPECT_EQ(recorded_run(run).world(), 1);
  const std::string good = read_text(path);
  for (std::size_t i = 0; i < 12; ++i) {
    std::string flipped = good;
    flipped[i] ^= 1;
    write_text(path, flipped);
    EXPECT_THAT(message_of<OperatingError>([&] { recorded_run(run); }), HasSubstr(path + ": is ")) << i;
  }
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(message_of<OperatingError>([&] { recorded_run(run); }),
              HasSubstr(path + ": cannot be read: is a"));
}

TEST_F(JournalTest, ACursorContinuesWhereItStoodAtTheEnd) {
  JournalWriter writer(path_, "{}");
  JournalCursor cursor(path_);
  EXPECT_THAT(lines_of(cursor), ElementsAre("head {}"));
  writer.event({tick(5), "sync", "verdict", 1, 0});
  EXPECT_THAT(lines_of(cursor), ElementsAre("event sync verdict 1 0 @5"));
  writer.delivery("sync", "compute", "FinishStep", tick(4));
  writer.input("sync", std::vector<std::byte>(2 << 20));
  EXPECT_EQ(line_of(*cursor.next()), "delivery sync<compute FinishStep @4");
  EXPECT_EQ(std::get<JournalInput>(*cursor.next()).bytes.size(), 2u << 20);
  EXPECT_FALSE(cursor.next());
}

TEST_F(JournalTest, ACursorMayComeBeforeTheFirstByte) {
  read_sample();
  const std::string other = scratch_.path("journal-1");
  for (const std::string& begin : {std::string(), std::string(100, '\0'), '\0' + bytes_.substr(1, 11),
                                   '\0' + bytes_.substr(1, 3) + std::string(100, '\0')}) {
    write_text(other, begin);
    JournalCursor cursor(other);
    EXPECT_FALSE(cursor.next());
    write_text(other, bytes_);
    EXPECT_EQ(lines_of(cursor), sample_);
  }
}

TEST_F(JournalTest, IsReadWhileItIsWritten) {
  const Watchdog watchdog;
  constexpr int64_t kMany = 300'000;
  JournalWriter writer(path_, "{}");
  std::thread thread([&writer] {
    for (int64_t i = 0; i < kMany; ++i) writer.event({tick(3 * i), "compute", "forward", i, -i});
  });
  JournalCursor cursor(path_);
  int64_t seen = -1;  // the head
  while (seen < kMany) {
    const auto record = cursor.next();
    if (!record) continue;
    if (seen >= 0) {
      EXPECT_EQ(line_of(*record), "event compute forward " + std::to_string(seen) + " " +
                                      std::to_string(-seen) + " @" + std::to_string(3 * seen));
    }
    ++seen;
    if (HasFailure()) break;
  }
  thread.join();
}

TEST_F(JournalTest, ANewWriterLeavesTheOldFileToItsReaders) {
  read_sample();
  JournalCursor cursor(path_);
  { JournalWriter writer(path_, "{}"); }
  EXPECT_EQ(lines_of(cursor), sample_);
  EXPECT_THAT(lines_of(path_), ElementsAre("head {}"));
}

}  // namespace
}  // namespace tutti
