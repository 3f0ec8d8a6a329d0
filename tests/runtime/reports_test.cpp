#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "runtime/process/this_process.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

// A process that is another rank, reports an error, and stays until it is destroyed.
class OtherRank {
 public:
  OtherRank(const std::string& file, int rank) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) {
      share_reports(file, "attempt", rank);
      const char first = first_to_report() ? 'y' : 'n';
      if (::write(ready[1], &first, 1) == 1) ::pause();
      ::_exit(0);
    }
    EXPECT_EQ(::read(ready[0], &first_, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~OtherRank() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  OtherRank(const OtherRank&) = delete;

  bool is_first() const { return first_ == 'y'; }

 private:
  pid_t process_ = -1;
  char first_ = 0;
};

// A process of another user that takes a name.
class OtherUser {
 public:
  static constexpr uid_t kNobody = 65534;

  OtherUser(const std::string& name, bool listens) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) {
      char done = ::setuid(kNobody) == 0 ? 'y' : 'n';
      if (!listens) bind_silently(name);
      if (listens && !take_name(name)) done = 'n';
      if (::write(ready[1], &done, 1) == 1) ::pause();
      ::_exit(0);
    }
    char done = 0;
    EXPECT_EQ(::read(ready[0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~OtherUser() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;

 private:
  static void bind_silently(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(::socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<const sockaddr*>(&address), size),
              0);
  }

  pid_t process_ = -1;
};

std::string own_name(const std::string& what) {
  return "tutti reports_test " + std::to_string(::getpid()) + what;
}

TEST(TakenName, IsItsFirstTakers) {
  const std::string name = own_name("first");
  EXPECT_TRUE(take_name(name));
  EXPECT_FALSE(take_name(name));
  EXPECT_TRUE(take_name(own_name("another")));
}

TEST(TakenName, OfAnotherUserStopsNoReport) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs the right to become another user";
  for (const bool listens : {true, false}) {
    const std::string name = own_name(listens ? "listens" : "silent");
    const OtherUser other(name, listens);
    EXPECT_TRUE(take_name(name)) << listens;
  }
}

class Reports : public testing::Test {
 protected:
  ~Reports() override { share_reports("", "", 0); }
  const Scratch folder_;
  const std::string file_ = folder_.path(".reported");
};

TEST_F(Reports, AFolderThatIsMovedStaysThePlaceToAgree) {
  const std::string before = folder_.path("before"), after = folder_.path("after");
  for (const int rank : {1, 2}) {
    std::filesystem::create_directories(before);
    share_reports(before + "/.reported", "attempt", rank);
    std::filesystem::remove_all(after);
    std::filesystem::rename(before, after);
    EXPECT_TRUE(first_to_report());
    EXPECT_EQ(read_text(after + "/.reported"), "attempt");
  }
}

TEST_F(Reports, WhereTheFolderIsRemovedRankZeroReports) {
  for (const int rank : {0, 1, 2}) {
    std::filesystem::create_directories(folder_.path("gone"));
    share_reports(folder_.path("gone/.reported"), "attempt", rank);
    std::filesystem::remove_all(folder_.path("gone"));
    EXPECT_EQ(first_to_report(), rank == 0);
  }
}

TEST_F(Reports, LinksAreNotWrittenThrough) {
  write_text(folder_.path("victim"), "untouched");
  std::filesystem::create_symlink("victim", file_);
  share_reports(file_, "attempt", 1);
  EXPECT_TRUE(first_to_report());
  EXPECT_EQ(read_text(folder_.path("victim")), "untouched");
}

TEST_F(Reports, OneRankOfAnAttemptIsTheFirst) {
  {
    const OtherRank one(file_, 1), two(file_, 2);
    EXPECT_TRUE(one.is_first());
    EXPECT_FALSE(two.is_first());
  }
  EXPECT_FALSE(OtherRank(file_, 3).is_first()) << "the first is gone, and has reported";
  share_reports(file_, "another attempt", 2);
  EXPECT_TRUE(first_to_report());
  EXPECT_STREQ(reporting_rank(), "rank 2: ");
}

TEST_F(Reports, WithoutTheFileEveryRankReports) {
  EXPECT_TRUE(first_to_report());
  share_reports("/nowhere/.reported", "attempt", 1);
  EXPECT_TRUE(first_to_report());
}

}  // namespace
}  // namespace tutti
