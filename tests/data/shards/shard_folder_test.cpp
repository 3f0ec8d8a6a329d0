#include "data/shards/shard_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "data/shards/fetch_command.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/printable.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr int kRemoteShards = 12;
constexpr uint64_t kShardBytes = 40'000;

// A shard of one sample of one column, each byte its number.
std::string shard_bytes(int number) {
  std::string bytes(kShardBytes, static_cast<char>('a' + number));
  const uint32_t head[] = {1, 12, kShardBytes};
  bytes.replace(0, sizeof head, reinterpret_cast<const char*>(head), sizeof head);
  return bytes;
}

// A remote dataset, and commands that fetch it.
class RemoteShards : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(remote_);
    std::string shards;
    for (int i = 0; i < kRemoteShards; ++i) {
      const std::string bytes = shard_bytes(i);
      write_text(remote_ + '/' + name(i), bytes);
      char hash[20];
      std::snprintf(hash, sizeof hash, "%016llx",
                    static_cast<unsigned long long>(XXH64(bytes.data(), bytes.size(), 0)));
      shards += std::string(i ? "," : "") +
                R"({"format": "mds", "version": 2, "compression": null, "zip_data": null,
          "column_names": ["x"], "column_encodings": ["bytes"], "column_sizes": [39988], "samples": 1,
          "raw_data": {"basename": ")" +
                name(i) + R"(", "bytes": 40000, "hashes": {"sha1": "0", "xxh64": ")" + hash + R"("}}})";
    }
    write_text(remote_ + "/index.json", R"({"version": 2, "shards": [)" + shards + "]}");
  }

  static std::string name(int shard) { return "shard." + std::to_string(shard) + ".mds"; }
  std::string counted(const std::string& command) const {
    return "echo {source} >> " + log_ + "; " + command;
  }
  int64_t fetches(const std::string& of) const {
    const std::string log = read_text(log_);
    int64_t count = 0;
    for (std::size_t at = log.find(of + '\n'); at != std::string::npos; at = log.find(of + '\n', at + 1))
      ++count;
    return count;
  }
  ShardFolder::Options options(uint64_t most_bytes = 0) const {
    return {local_, remote_, counted("cp {source} {target}"), most_bytes};
  }
  uint64_t local_bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(local_))
      if (entry.path().extension() == ".mds") bytes += fs::file_size(entry.path());
    return bytes;
  }
  static void expect_shard(const ShardFolder& folder, int number) {
    const OpenShardPtr shard = folder.open(number);
    const auto bytes = shard->file.bytes();
    ASSERT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), shard_bytes(number));
  }

  Scratch scratch_;
  std::string remote_ = scratch_.path("it's remote"), local_ = scratch_.path("local/folder");
  std::string log_ = scratch_.path("log");
};

TEST_F(RemoteShards, AreFetchedWhenTheyAreRead) {
  for (int run = 0; run < 2; ++run) {
    const ShardFolder folder(options());
    expect_shard(folder, 3);
    expect_shard(folder, 3);
    EXPECT_FALSE(folder.is_there(2));
  }
  EXPECT_EQ(fetches(name(3)), 1);
  EXPECT_EQ(fetches("index.json"), 1);
  EXPECT_EQ(fetches(name(2)), 0);
}

TEST_F(RemoteShards, AreFetchedOnceByManyReaders) {
  const ShardFolder one(options()), other(options());  // as of two ranks: locks are of descriptors
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRemoteShards; ++i) expect_shard(t % 2 ? one : other, (i + t) % kRemoteShards);
    });
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < kRemoteShards; ++i) EXPECT_EQ(fetches(name(i)), 1) << i;
}

TEST_F(RemoteShards, UsedLeastRecentlyAreEvicted) {
  const ShardFolder folder(options(3 * kShardBytes));
  for (const int i : {0, 1, 2, 0, 3, 4}) {
    expect_shard(folder, i);
    EXPECT_LE(local_bytes(), 3 * kShardBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a file's times are coarse
  }
  EXPECT_FALSE(folder.is_there(1));
  EXPECT_TRUE(folder.is_there(4));
  expect_shard(folder, 1);
  EXPECT_EQ(fetches(name(1)), 2);
}

TEST_F(RemoteShards, UsedByAnotherReaderAreNotTheLeastRecent) {
  for (const int i : {0, 1, 2, 0, 3}) {
    expect_shard(ShardFolder(options(3 * kShardBytes)), i);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const ShardFolder folder(options());
  EXPECT_TRUE(folder.is_there(0));
  EXPECT_FALSE(folder.is_there(1));
}

TEST_F(RemoteShards, InUseStay) {
  const ShardFolder folder(options(2 * kShardBytes)), other(options(2 * kShardBytes));
  const OpenShardPtr held = other.open(0);
  for (int i = 1; i < 6; ++i) expect_shard(folder, i);
  EXPECT_TRUE(folder.is_there(0));
  const OpenShardPtr own = folder.open(5);
  for (int i = 6; i < 9; ++i) expect_shard(folder, i);
  EXPECT_TRUE(folder.is_there(5));
  EXPECT_TRUE(folder.is_there(0));
  EXPECT_FALSE(folder.is_there(6));
}

TEST_F(RemoteShards, AreWholeWhileSeveralThreadsReadThroughASmallCache) {
  const ShardFolder one(options(2 * kShardBytes)), other(options(2 * kShardBytes));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) expect_shard(t % 2 ? one : other, (5 * i + 7 * t) % kRemoteShards);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(local_bytes(), 8 * kShardBytes);
}

TEST_F(RemoteShards, OfAKilledFetchAreFetchedAnew) {
  fs::create_directories(local_);
  write_text(local_ + '/' + name(1) + ".77.1.part", "a part");
  write_text(local_ + '/' + name(2), "cut");  // by a crash of the host
  const ShardFolder folder(options());
  expect_shard(folder, 1);
  expect_shard(folder, 2);
  for (const auto& entry : fs::directory_iterator(local_))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
}

TEST_F(RemoteShards, DamagedOnTheirWayAreFetchedAnewOnce) {
  ShardFolder::Options once = options();
  once.fetch = counted("cp {source} {target}; test -e " + log_ + ".2 || { printf x | dd of={target} bs=1 " +
                       "seek=99 conv=notrunc status=none; touch " + log_ + ".2; }");
  write_text(log_ + ".2", "");
  const ShardFolder folder(once);  // its index is whole
  fs::remove(log_ + ".2");
  expect_shard(folder, 4);
  EXPECT_EQ(fetches(name(4)), 2);
  write_text(remote_ + '/' + name(5), std::string(kShardBytes, 'x'));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(message_of<UserError>([&] { folder.open(5); }),
                HasSubstr(name(5) + ": is damaged: its xxh64 is "));
  EXPECT_EQ(fetches(name(5)), 2);
}

TEST_F(RemoteShards, ErrorsOfTheCommandAreNamed) {
  ShardFolder::Options bad = options();
  const ShardFolder folder(bad);
  fs::remove(remote_ + '/' + name(0));
  const std::string error = message_of<OperatingError>([&] { folder.open(0); });
  EXPECT_THAT(error, AllOf(HasSubstr("failed with exit code 1; what it printed is in " + local_ +
                                     "/shard.0.mds.fetch.log"),
                           Not(HasSubstr("cannot stat"))));
  EXPECT_THAT(error,
              HasSubstr("echo ..., which fetches " + on_one_line(remote_ + "/shard.0.mds") + ", failed"));
  EXPECT_THAT(
      message_of<OperatingError>([&] { fetch_file("true {source}", "a", local_ + "/b", local_ + "/b.log"); }),
      HasSubstr("has not made its {target}"));
  EXPECT_THAT(
      message_of<OperatingError>([&] { fetch_file("exit 7", "a", local_ + "/b", local_ + "/b.log"); }),
      EndsWith("failed with exit code 7"));
}

// As a signed address.
TEST_F(RemoteShards, TheOutputOfAFailedCommandIsForItsUserAlone) {
  const std::string log = scratch_.path("b.log");
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(message_of<OperatingError>([&] {
                  fetch_file("echo first >&2; echo '?sig=secret' >&2; echo out; exit 7", "a",
                             scratch_.path("b"), log);
                }),
                EndsWith("failed with exit code 7; what it printed is in " + log));
    EXPECT_EQ(read_text(log), "first\n?sig=secret\n");
    EXPECT_EQ(fs::status(log).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  fetch_file("echo done >&2; cp {source} {target}", log, scratch_.path("b"), log);
  EXPECT_FALSE(fs::exists(log)) << "nothing failed";
}

// Names of an index.json that a stranger has written, of files that are there.
constexpr const char* kPrograms[] = {"$(touch shell_was_here).mds",
                                     "`touch shell_was_here`.mds",
                                     "'; touch shell_was_here; '.mds",
                                     "a;touch shell_was_here#.mds",
                                     "a\ntouch shell_was_here\n.mds",
                                     "{target}.mds",
                                     "a b.mds",
                                     "*.mds",
                                     "~.mds"};

TEST_F(RemoteShards, ANameThatAShellWouldReadIsRefused) {
  const std::string index = read_text(remote_ + "/index.json");
  for (const std::string named : kPrograms) {
    std::string escaped = named;
    replace_all(escaped, "\n", "\\n");
    std::string other = index;
    replace_all(other, name(2), escaped);
    write_text(remote_ + "/index.json", other);
    fs::remove_all(local_);
    EXPECT_THAT(
        message_of<UserError>([&] { ShardFolder folder(options()); }),
        AllOf(HasSubstr("index.json: names a file " + shown(named)), HasSubstr("only letters, digits")));
    const ShardFolder::Options in_place{remote_};
    EXPECT_NO_THROW(ShardFolder folder(in_place)) << "no command is run";
  }
}

// Also where the command gives them on to another shell.
TEST_F(RemoteShards, NamesAreArgumentsOfTheCommand) {
  const std::string odd = scratch_.path("$(touch shell_was_here) \"'`touch shell_was_here`"),
                    to = scratch_.path("to");
  write_text(odd, "bytes");
  for (const char* command :
       {"cp {source} {target}", "cat < {source} > {target}", "cp \\\n {source}  {target}; true",
        "sh -c 'cp \"$0\" \"$1\"' {source} {target}", "(cat {source}) >{target}"}) {
    EXPECT_NO_THROW(require_fetch_command(command)) << command;
    fetch_file(command, odd, to, to + ".log");
    EXPECT_EQ(read_text(to), "bytes") << command;
    fs::remove(to);
  }
  EXPECT_FALSE(fs::exists("shell_was_here"));
}

TEST_F(RemoteShards, ACommandWithNamesInQuotesIsRefused) {
  for (const char* command :
       {"cp '{source}' {target}", "cp \"{source}\" {target}", "cp {source} \"a {target}\"",
        "cp \\{source} {target}", "sh -c 'cp {source} {target}'", "ssh host \"cat '{source}'\" > {target}",
        "echo \"\\\"\" '{source}' {target}"})
    EXPECT_THAT(message_of<UserError>([&] { require_fetch_command(command); }), HasSubstr("stands in quotes"))
        << command;
  for (const char* command :
       {"cp 'a' {source} \"b\" {target}", "echo \\\" {source} \\' {target}", "cp {source} {target} '"})
    EXPECT_NO_THROW(require_fetch_command(command)) << command;
  EXPECT_THAT(message_of<UserError>([&] { require_fetch_command("cp {source} x"); }),
              HasSubstr("there is no {target}"));
}

TEST_F(RemoteShards, LocalFilesAreNeverRemoved) {
  ShardFolder::Options local{remote_, "", "", kShardBytes};
  const ShardFolder folder(local);
  for (int i = 0; i < kRemoteShards; ++i) expect_shard(folder, i);
  for (int i = 0; i < kRemoteShards; ++i) EXPECT_TRUE(folder.is_there(i));
  EXPECT_FALSE(fs::exists(remote_ + "/.tutti"));
}

}  // namespace
}  // namespace tutti
