#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "io/journal/journal_writer.h"
#include "runtime/process/crash_report.h"
#include "tests/io/journal/journal_lines.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kThreads = 4;
constexpr const char* kActors[kThreads] = {"loader", "compute", "sync", "checkpointer"};

// The number of events that each thread of the child has appended, in memory that outlives it.
class SharedCounts {
 public:
  SharedCounts()
      : counts_(static_cast<std::atomic<int64_t>*>(::mmap(nullptr, sizeof(int64_t) * kThreads,
                                                          PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                                          -1, 0))) {}
  ~SharedCounts() { ::munmap(counts_, sizeof(int64_t) * kThreads); }
  std::atomic<int64_t>& operator[](int thread) { return counts_[thread]; }

 private:
  std::atomic<int64_t>* counts_;
};

[[noreturn]] void append_until_killed(const std::string& path, SharedCounts& counts) {
  JournalWriter writer(path, "{}");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&writer, &counts, thread] {
      for (int64_t i = 0;; ++i) {
        writer.event({TimePoint(Nanoseconds(100 * i)), kActors[thread], "forward", i, 7 * i});
        counts[thread].store(i + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::abort();
}

// The events of each thread, which must be 0, 1, 2 and so on.
std::map<std::string_view, int64_t> events_of(JournalCursor& cursor) {
  std::map<std::string_view, int64_t> events;
  while (const auto record = cursor.next()) {
    const auto* event = std::get_if<JournalEvent>(&*record);
    if (event == nullptr) continue;
    const JournalEvent& one = *event;
    EXPECT_EQ(one.step, events[one.actor]++);
    EXPECT_EQ(one.detail, 7 * one.step);
    EXPECT_EQ(one.time, TimePoint(Nanoseconds(100 * one.step)));
    EXPECT_EQ(one.kind, "forward");
    if (testing::Test::HasFailure()) break;
  }
  return events;
}

class JournalCrashTest : public testing::TestWithParam<int> {};

TEST_P(JournalCrashTest, AKillLosesNothingThatWasAppended) {
  const Scratch scratch;
  const std::string path = scratch.path("journal-0");
  SharedCounts counts;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) append_until_killed(path, counts);
  for (int thread = 0; thread < kThreads; ++thread) {
    while (counts[thread] < GetParam()) std::this_thread::yield();
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

  JournalCursor cursor(path);
  auto events = events_of(cursor);
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_GE(events[kActors[thread]], counts[thread]);
    EXPECT_LE(events[kActors[thread]], counts[thread] + 1);
  }
  EXPECT_LT(cursor.torn_bytes(), 64u);  // a record that was under way
}

INSTANTIATE_TEST_SUITE_P(After, JournalCrashTest, testing::Values(1, 10, 1000, 20'000, 100'000));

void expect_cut_short(const std::string& path, int64_t least, int64_t most, const char* why) {
  JournalCursor cursor(path);
  int64_t deliveries = 0;
  std::string last;
  while (const auto record = cursor.next()) {
    if (const auto* delivery = std::get_if<JournalDelivery>(&*record)) {
      EXPECT_EQ(delivery->time, TimePoint(Nanoseconds(100 * deliveries++)));
    }
    last = line_of(*record);
  }
  EXPECT_EQ(last, std::string("incomplete ") + why);
  EXPECT_EQ(cursor.torn_bytes(), 0u);
  EXPECT_GE(deliveries, least);
  EXPECT_LT(deliveries, most);
}

constexpr int64_t kTooMany = 500'000;  // some 4 MB

void append_too_many(JournalWriter& writer) {
  for (int64_t i = 0; i < kTooMany; ++i) {
    writer.delivery("sync", "compute", "FinishStep", TimePoint(Nanoseconds(100 * i)));
  }
}

// A file system of 2 MB.
class JournalOnFullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(mount_);
    if (::mount("tmpfs", mount_.c_str(), "tmpfs", 0, "size=2m") != 0) {
      GTEST_SKIP() << "needs the right to mount a tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(mount_.c_str());
  }

  Scratch scratch_;
  std::string mount_ = scratch_.path("small");
  std::string path_ = mount_ + "/journal-0";
  bool mounted_ = false;
};

TEST_F(JournalOnFullDiskTest, EndsTheJournalAndNotTheProcess) {
  {
    JournalWriter writer(path_, "{}");
    EXPECT_EQ(writer.incomplete(), "");
    append_too_many(writer);
    EXPECT_EQ(writer.incomplete(), path_ + ": " + std::strerror(ENOSPC));
    const uint64_t written = writer.bytes();
    writer.end("done");
    EXPECT_EQ(writer.bytes(), written);
    expect_cut_short(path_, 100'000, kTooMany, std::strerror(ENOSPC));
  }
  expect_cut_short(path_, 100'000, kTooMany, std::strerror(ENOSPC));
}

TEST_F(JournalOnFullDiskTest, IsIncompleteFromTheStart) {
  write_text(mount_ + "/full", std::string(2 << 20, 'x'));
  {
    JournalWriter writer(path_, "{}");
    append_too_many(writer);
    EXPECT_THAT(writer.incomplete(), HasSubstr(std::strerror(ENOSPC)));
  }
  EXPECT_THAT(lines_of(path_), SizeIs(0));
}

TEST_F(JournalOnFullDiskTest, ARecordThatDoesNotFitIsTheLast) {
  JournalWriter writer(path_, "{}");
  writer.input("disk", std::vector<std::byte>(4 << 20));
  writer.end("done");
  EXPECT_THAT(lines_of(path_), ElementsAre("head {}", std::string("incomplete ") + std::strerror(ENOSPC)));
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(JournalLimitTest, AFileSizeLimitEndsTheJournalAndNotTheProcess) {
  const Scratch scratch;
  const std::string path = scratch.path("journal-0");
  {
    const FileSizeLimit limit(2'500'000);
    JournalWriter writer(path, "{}");
    append_too_many(writer);
    EXPECT_THAT(writer.incomplete(), HasSubstr(std::strerror(EFBIG)));
  }
  expect_cut_short(path, 200'000, kTooMany, std::strerror(EFBIG));
}

TEST(JournalLimitTest, AFileThatCannotBeMadeLeavesAJournalOfNothing) {
  const Scratch scratch;
  JournalWriter writer(scratch.path("absent/journal-0"), "{}");
  writer.parts("gradient", {"weight"});
  append_too_many(writer);
  EXPECT_EQ(writer.incomplete(), scratch.path("absent/journal-0") + ": " + std::strerror(ENOENT));
  EXPECT_EQ(writer.bytes(), 0u);
}

// Journals that somebody spoils while they are written.
class SpoiltJournalTest : public testing::Test {
 protected:
  void expect_spoilt(JournalWriter& writer, const std::string& why) {
    append_too_many(writer);
    EXPECT_THAT(writer.incomplete(), testing::MatchesRegex(path_ + ": (" + why + ")"));
    const uint64_t written = writer.bytes();
    writer.end("done");
    EXPECT_EQ(writer.bytes(), written);
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("journal-0");
};

constexpr const char* kCutShort = "it was cut short while the run wrote it";

TEST_F(SpoiltJournalTest, ATruncatedFileEndsTheJournalAndNotTheProcess) {
  JournalWriter writer(path_, "{}");
  std::filesystem::resize_file(path_, 20);
  expect_spoilt(writer, kCutShort);
}

// Nor is it reported as one in the rank's log.
TEST_F(SpoiltJournalTest, ATruncatedFileIsNoCrash) {
  const RingRecorder recorder;
  const CrashReport report(recorder, 1, scratch_.path("rank-1.log"));
  JournalWriter writer(path_, "{}");
  std::filesystem::resize_file(path_, 20);
  expect_spoilt(writer, kCutShort);
  EXPECT_EQ(read_text(scratch_.path("rank-1.log")), "");
}

TEST_F(SpoiltJournalTest, ATruncatedFileIsReportedEvenWhereLittleFollows) {
  JournalWriter writer(path_, "{}");
  writer.end("done");
  EXPECT_EQ(writer.incomplete(), "");
  std::filesystem::resize_file(path_, 20);
  EXPECT_EQ(writer.incomplete(), path_ + ": " + kCutShort);
}

// The same as `chattr +i`.
bool set_immutable(const std::string& path, bool immutable) {
  const int file = ::open(path.c_str(), O_RDONLY);
  int flags = 0;
  const bool known = ::ioctl(file, FS_IOC_GETFLAGS, &flags) == 0;
  flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  const bool done = known && ::ioctl(file, FS_IOC_SETFLAGS, &flags) == 0;
  ::close(file);
  return done;
}

TEST_F(SpoiltJournalTest, AnImmutableFileEndsTheJournalAndNotTheProcess) {
  std::string folder = std::filesystem::temp_directory_path() / "tutti-immutable-XXXXXX";
  path_ = std::string(::mkdtemp(folder.data())) + "/journal-0";
  auto writer = std::make_unique<JournalWriter>(path_, "{}");
  const bool immutable = set_immutable(path_, true);
  if (immutable) expect_spoilt(*writer, std::string("it could no longer be written|") + std::strerror(EPERM));
  set_immutable(path_, false);
  writer.reset();
  std::filesystem::remove_all(folder);
  if (!immutable) GTEST_SKIP() << "needs the right to make a file immutable, and a file system that can";
}

}  // namespace
}  // namespace tutti
