#include "io/remote/uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "io/remote/remote_checkpoints.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanoseconds kLimit = std::chrono::seconds(60);

// STORE VERB ...: s3://bucket/run is the folder STORE/bucket/run. Uploads wait for the end of a file `gate`.
constexpr const char* kStoreScript = R"sh(root=$1 verb=$2
shift 2
place() { echo "$root/${1#s3://}"; }
echo "$verb $2" >> "$root/calls"
case $verb in
  put) while [ -e "$root/gate" ]; do sleep 0.005; done
       [ -e "$root/broken" ] && exit 1
       to=$(place "$2"); mkdir -p "${to%/*}"; cp "$1" "$to" ;;
  get) cp "$(place "$1")" "$2" ;;
  ls) cd "$(place "$1")" && find . -type f -printf 's3://bucket/run/%P\n' ;;
  rm) rm -r "$(place "$1")" ;;
esac
)sh";

class UploadLog final : public Log {
 public:
  void write(LogLevel level, const std::string& line) override {
    if (on_line) on_line(line);
    const std::lock_guard lock(mutex_);
    if (level == LogLevel::kWarning) warnings_.push_back(line);
  }
  std::function<void(const std::string&)> on_line;
  void flush() override {}
  std::vector<std::string> warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
};

class UploadsTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(local_);
    fs::create_directories(store_);
    write_text(script_, kStoreScript);
  }

  RemoteStore::Options store_options() const {
    RemoteKeys keys;
    keys.num_attempts = 2;
    keys.retry_interval = Time(0, TimeUnit::kSecond);
    const std::string line = "sh " + script_ + ' ' + scratch_.path();
    return {.keys = keys,
            .commands = {line + " put {source} {target}", line + " get {source} {target}",
                         line + " ls {remote}", line + " rm {remote}"},
            .folder = "s3://bucket/run/",
            .log = scratch_.path("remote.log")};
  }
  void publish(const std::string& name) {
    CheckpointManifest manifest;
    const std::string unfinished = local_ + "/." + name + "-1";
    manifest.files.push_back(write_rank_file(disk_, unfinished, 0, pieces_of(tensors_, 0, 1)));
    publish_checkpoint(disk_, unfinished, local_ + '/' + name, manifest);
  }
  std::vector<std::string> there() const { return remote_checkpoints(RemoteStore(store_options()), {}); }
  std::string latest() const { return read_text(store_ + "/latest"); }
  void wait_until_uploading(const std::string& name) const {
    while (read_text(scratch_.path("calls")).find("put s3://bucket/run/" + name) == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  Scratch scratch_;
  const std::string local_ = scratch_.path("local"), store_ = scratch_.path("bucket/run"),
                    script_ = scratch_.path("store.sh");
  PosixDisk disk_;
  UploadLog log_;
  const std::map<std::string, at::Tensor> tensors_ = sample_tensors();
  Uploads uploads_{{store_options(), scratch_.path(), local_, {}, 1}, log_};
};

// The checkpoint is dropped while it is copied, and once more when its removal has begun.
TEST_F(UploadsTest, ACheckpointThatIsDroppedTwiceTakesNoOtherAlong) {
  write_text(scratch_.path("gate"), "");
  publish("ep1-ba1");
  publish("ep2-ba2");
  bool dropped_again = true;
  log_.on_line = [&](const std::string& line) {
    if (line.find("ep1-ba1 is in") != line.npos) dropped_again = uploads_.drop("ep1-ba1");
  };
  uploads_.begin({"ep1-ba1"});
  wait_until_uploading("ep1-ba1");
  EXPECT_FALSE(uploads_.drop("ep1-ba1"));
  uploads_.published("ep2-ba2");
  fs::remove(scratch_.path("gate"));
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_FALSE(dropped_again);
  EXPECT_FALSE(fs::exists(local_ + "/ep1-ba1"));
  EXPECT_TRUE(fs::exists(local_ + "/ep2-ba2/manifest.json"));
  EXPECT_THAT(there(), ElementsAre("ep2-ba2"));
}

TEST_F(UploadsTest, TheWaitEndsWhereTheCallerGivesUp) {
  write_text(scratch_.path("gate"), "");
  publish("ep1-ba1");
  uploads_.begin({"ep1-ba1"});
  int looks = 0;
  EXPECT_THAT(uploads_.finish(std::chrono::hours(1), [&] { return ++looks > 1; }), ElementsAre("ep1-ba1"));
  EXPECT_EQ(looks, 2);
}

TEST_F(UploadsTest, TheNewestComesFirstAndTheLinkNeverGoesBack) {
  write_text(scratch_.path("gate"), "");
  publish("ep1-ba1");
  uploads_.begin({"ep1-ba1"});
  wait_until_uploading("ep1-ba1");
  for (const char* name : {"ep2-ba2", "ep3-ba3"}) {
    publish(name);
    uploads_.published(name);
  }
  fs::remove(scratch_.path("gate"));
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  const std::string calls = read_text(scratch_.path("calls"));
  EXPECT_LT(calls.find("run/ep3-ba3/manifest.json"), calls.find("run/ep2-ba2/"));
  EXPECT_THAT(there(), ElementsAre("ep3-ba3", "ep2-ba2", "ep1-ba1"));
  EXPECT_EQ(latest(), "ep3-ba3\n");
  EXPECT_THAT(log_.warnings(), IsEmpty());
}

TEST_F(UploadsTest, AnOldCheckpointStaysUntilANewerOneIsThere) {
  write_text(scratch_.path("gate"), "");
  publish("ep1-ba1");
  uploads_.begin({"ep1-ba1"});
  wait_until_uploading("ep1-ba1");
  for (const char* name : {"ep2-ba2", "ep3-ba3"}) {
    publish(name);
    uploads_.published(name);
  }
  EXPECT_FALSE(uploads_.drop("ep1-ba1")) << "its files are being copied";
  EXPECT_TRUE(uploads_.drop("ep2-ba2"));
  fs::remove(scratch_.path("gate"));
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_THAT(there(), ElementsAre("ep3-ba3"));
  const std::string calls = read_text(scratch_.path("calls"));
  EXPECT_LT(calls.find("run/ep3-ba3/manifest.json"), calls.find("rm ")) << "one is always there";
  EXPECT_FALSE(fs::exists(local_ + "/ep1-ba1"));
  EXPECT_THAT(calls, testing::Not(HasSubstr("run/ep2-ba2")));
}

TEST_F(UploadsTest, AFailedCheckpointIsNamedAndComesWithTheNext) {
  write_text(scratch_.path("broken"), "");
  publish("ep1-ba1");
  uploads_.begin({"ep1-ba1"});
  ASSERT_TRUE(uploads_.idle_within(kLimit));
  EXPECT_THAT(log_.warnings(),
              ElementsAre(HasSubstr("checkpoint ep1-ba1 is not in s3://bucket/run, and is tried")));
  EXPECT_THAT(read_text(scratch_.path("uploads.json")),
              HasSubstr(R"("waiting": ["ep1-ba1"], "problem": "sh ..., which)"));
  fs::remove(scratch_.path("broken"));
  publish("ep2-ba2");
  uploads_.published("ep2-ba2");
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_THAT(there(), ElementsAre("ep2-ba2", "ep1-ba1"));
  EXPECT_THAT(read_text(scratch_.path("uploads.json")), HasSubstr(R"("waiting": [], "problem": "")"));
}

TEST_F(UploadsTest, ACheckpointInTheStoreIsNotCopiedAgain) {
  for (const char* name : {"ep1-ba1", "ep2-ba2"}) publish(name);
  fs::copy(local_ + "/ep1-ba1", store_ + "/ep1-ba1", fs::copy_options::recursive);
  uploads_.begin({"ep1-ba1", "ep2-ba2"});
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_THAT(read_text(scratch_.path("calls")), testing::Not(HasSubstr("put s3://bucket/run/ep1-ba1")));
  EXPECT_THAT(there(), ElementsAre("ep2-ba2", "ep1-ba1"));
}

// As after a start from the checkpoint before, since the copy was damaged.
TEST_F(UploadsTest, ACheckpointThatIsDoneAgainReplacesItsCopy) {
  publish("ep1-ba1");
  fs::copy(local_ + "/ep1-ba1", store_ + "/ep1-ba1", fs::copy_options::recursive);
  flip_bit(store_ + "/ep1-ba1/rank-0.h5", 5000);
  uploads_.begin({});
  uploads_.published("ep1-ba1");
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_EQ(read_text(store_ + "/ep1-ba1/rank-0.h5"), read_text(local_ + "/ep1-ba1/rank-0.h5"));
}

TEST_F(UploadsTest, AnEndThatDoesNotWaitNamesTheRest) {
  write_text(scratch_.path("gate"), "");
  for (const char* name : {"ep1-ba1", "ep2-ba2"}) publish(name);
  uploads_.begin({"ep1-ba1", "ep2-ba2"});
  EXPECT_THAT(uploads_.finish(std::chrono::milliseconds(30)), ElementsAre("ep1-ba1", "ep2-ba2"));
}

TEST_F(UploadsTest, ADamagedOrPartialCheckpointIsNotFetched) {
  publish("ep1-ba1");
  const RemoteStore store(store_options());
  const std::string copy = store_ + "/ep1-ba1", to = scratch_.path("fetched");
  fs::copy(local_ + "/ep1-ba1", copy, fs::copy_options::recursive);
  fetch_checkpoint(store, "ep1-ba1", to + "/ep1-ba1");
  EXPECT_EQ(read_text(to + "/ep1-ba1/rank-0.h5"), read_text(copy + "/rank-0.h5"));
  const auto why = [&] {
    return message_of<OperatingError>([&] { fetch_checkpoint(store, "ep1-ba1", to + "/again"); });
  };
  flip_bit(copy + "/rank-0.h5", 5000);
  EXPECT_THAT(why(), HasSubstr("corrupt"));
  fs::remove(copy + "/rank-0.h5");
  EXPECT_THAT(why(), HasSubstr("fetches s3://bucket/run/ep1-ba1/rank-0.h5, failed"));
  flip_bit(copy + "/manifest.json", 300);
  EXPECT_THAT(why(), HasSubstr("manifest.json"));
  EXPECT_THAT(disk_.list(to), ElementsAre("ep1-ba1"));
}

// As after a start on a bare machine.
TEST_F(UploadsTest, OldCheckpointsOfAnEarlierMachineGoOnceNewerOnesAreThere) {
  for (const char* name : {"ep1-ba1", "ep2-ba2", "ep3-ba3"}) publish(name);
  for (const char* name : {"ep1-ba1", "ep2-ba2"})
    fs::copy(local_ + '/' + name, store_ + '/' + name, fs::copy_options::recursive);
  fs::remove_all(local_ + "/ep1-ba1");
  uploads_.begin({"ep2-ba2"});
  ASSERT_TRUE(uploads_.idle_within(kLimit));
  uploads_.published("ep3-ba3");
  EXPECT_THAT(uploads_.finish(kLimit), IsEmpty());
  EXPECT_THAT(there(), ElementsAre("ep3-ba3", "ep2-ba2")) << "the local folder has both";
}

// A manifest may be a stranger's.
TEST_F(UploadsTest, AManifestThatNamesAFileElsewhereIsRefused) {
  CheckpointManifest manifest;
  manifest.files.push_back({.file = "../../outside", .bytes = 0});
  fs::create_directories(store_ + "/ep1-ba1");
  write_text(store_ + "/ep1-ba1/manifest.json", manifest.to_json());
  EXPECT_THAT(message_of<OperatingError>([&] {
                fetch_checkpoint(RemoteStore(store_options()), "ep1-ba1", scratch_.path("fetched/ep1-ba1"));
              }),
              HasSubstr("names a file ../../outside, which no checkpoint has"));
  EXPECT_THAT(read_text(scratch_.path("calls")), testing::Not(HasSubstr("outside")));
}

// As rclone, s3cmd and aws print the files.
TEST(RemotePathTest, AListedFileIsFoundBelowItsFolder) {
  for (const char* listed : {"ep1/rank-0.h5", "s3://bucket/a/run/ep1/rank-0.h5", "a/run/ep1/rank-0.h5"})
    EXPECT_EQ(path_below_folder(listed, "s3://bucket/a/run"), "ep1/rank-0.h5");
  EXPECT_EQ(path_below_folder("s3://bucket/ep1/rank-0.h5", "s3://bucket"), "ep1/rank-0.h5");
  EXPECT_EQ(path_below_folder("s3://bucket/a/run-2/ep1", "s3://bucket/a/run"), "");
}

}  // namespace
}  // namespace tutti
