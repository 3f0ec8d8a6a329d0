#include "io/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void expect_equal(const std::map<std::string, at::Tensor>& got,
                  const std::map<std::string, at::Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(got.at(name), tensor)) << name;
  }
}

std::string state_after(int64_t step) {
  RunState state;
  state.time.batch = step;
  return state.to_json();
}

class CheckpointTest : public testing::Test {
 protected:
  void write(const std::string& name, int world = 2, const std::string& state = "{}") {
    write_checkpoint(disk_, folder(name), sample_tensors(), world, state);
  }

  std::string folder(const std::string& name) const { return scratch_.path("checkpoints/" + name); }

  Checkpoint newest() {
    named_.clear();
    return newest_good_checkpoint(disk_, scratch_.path("checkpoints"),
                                  {[this](const std::string& bad) { named_.push_back(bad); }});
  }

  // Damages a file of the newer of two checkpoints; it is named, with `why`, and the older one is used.
  void expect_older_used(const std::string& file, const std::string& why,
                         const std::function<void(std::string)>& damage) {
    write("ep1-ba10");
    write("ep2-ba20");
    damage(folder("ep2-ba20/" + file));
    EXPECT_EQ(newest().folder, folder("ep1-ba10"));
    EXPECT_THAT(named_, ElementsAre(AllOf(HasSubstr("ep2-ba20/" + file), HasSubstr(why))));
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::vector<std::string> named_;
};

TEST_F(CheckpointTest, HoldsTheSameTensorsWhateverWorldWroteIt) {
  const auto tensors = sample_tensors();
  for (const int world : {1, 2, 3, 8}) {
    write("ep1-ba10", world);
    const WholeCheckpoint read = read_checkpoint(disk_, folder("ep1-ba10"));
    expect_equal(read.tensors, tensors);
    EXPECT_EQ(digest_of(read.tensors), digest_of(tensors)) << world;
  }
}

TEST_F(CheckpointTest, HoldsTensorsOfManyMegabytes) {  // files are read and written by the megabyte
  const std::map<std::string, at::Tensor> tensors = {{"model/a", at::arange(7, at::kFloat)},
                                                     {"model/b", at::arange(1'000'003, at::kFloat)},
                                                     {"model/c", at::arange(5, at::kLong)},
                                                     {"model/d", at::arange(300'001, at::kDouble)}};
  for (const int world : {1, 3}) {
    write_checkpoint(disk_, folder("ep1-ba10"), tensors, world);
    expect_equal(read_checkpoint(disk_, folder("ep1-ba10")).tensors, tensors);
  }
}

TEST_F(CheckpointTest, HoldsPiecesThatAreNotWholeRows) {
  const at::Tensor whole = at::arange(6 * 10, at::kFloat).reshape({6, 10});
  CheckpointManifest manifest;
  const std::string unfinished = folder("ep1-ba10.unfinished");
  for (int rank = 0; rank < 2; ++rank) {
    const at::Tensor columns = whole.narrow(1, rank * 4, rank == 0 ? 4 : 6).contiguous();
    const CheckpointPiece piece{"model/w", {6, 10}, {0, rank * 4}, columns.sizes().vec(), at::kFloat,
                                columns,   0};
    manifest.files.push_back(write_rank_file(disk_, unfinished, rank, {piece}));
  }
  publish_checkpoint(disk_, unfinished, folder("ep1-ba10"), manifest);
  expect_equal(read_checkpoint(disk_, folder("ep1-ba10")).tensors, {{"model/w", whole}});
}

TEST_F(CheckpointTest, KeepsTheState) {
  const std::string state =
      R"({"time":{"batch":10,"lr":0.1},"seed":18446744073709551615,"recipe":"a = \"b\"\n"})";
  write("ep1-ba10", 2, state);
  EXPECT_EQ(read_checkpoint(disk_, folder("ep1-ba10")).state, state);
  EXPECT_EQ(read_manifest(disk_, folder("ep1-ba10")).state, state);
}

TEST_F(CheckpointTest, TheManifestHasNoControlsAsTheyAre) {
  const std::string state = "{\"callbacks\":{\"a\u202e\xc2\x9b\":1}}";
  const at::Tensor one = at::ones({1});
  write_checkpoint(disk_, folder("ep1-ba10"), {{"model/\u202ew", one}}, 1, state);
  const std::string text = read_text(folder("ep1-ba10/manifest.json"));
  EXPECT_THAT(text, AllOf(HasSubstr("model/\\u202ew"), HasSubstr("a\\u202e\\u009b")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  EXPECT_EQ(read_manifest(disk_, folder("ep1-ba10")).state, state);
  expect_equal(read_checkpoint(disk_, folder("ep1-ba10")).tensors, {{"model/\u202ew", one}});
}

TEST_F(CheckpointTest, OldTensorNamesAreReadAsTodaysNames) {
  const at::Tensor step = at::scalar_tensor(3.0f);
  write_checkpoint(disk_, folder("ep1-ba10"), {{"optimizer/w/step", step}}, 1);
  expect_equal(read_checkpoint(disk_, folder("ep1-ba10")).tensors, {{"optimizers/w/step", step}});
}

TEST_F(CheckpointTest, SameTensorsGiveTheSameBytes) {
  write("ep1-ba10");
  const std::string first = read_text(folder("ep1-ba10/rank-1.h5")),
                    viewer = read_text(folder("ep1-ba10/checkpoint.h5"));
  write("ep1-ba10");
  EXPECT_EQ(read_text(folder("ep1-ba10/rank-1.h5")), first);
  EXPECT_EQ(read_text(folder("ep1-ba10/checkpoint.h5")), viewer);
}

TEST_F(CheckpointTest, ManifestHoldsTheHashOfTheWholeFile) {
  write("ep1-ba10");
  for (const RankFile& file : read_manifest(disk_, folder("ep1-ba10")).files) {
    const std::string bytes = read_text(folder("ep1-ba10/" + file.file));
    EXPECT_EQ(file.bytes, bytes.size()) << file.file;
    EXPECT_EQ(file.hash, XXH3_64bits(bytes.data(), bytes.size())) << file.file;
  }
}

TEST_F(CheckpointTest, LatestPointsAtTheOnePublishedLast) {
  write("ep1-ba10");
  write("ep2-ba20");
  EXPECT_EQ(std::filesystem::read_symlink(folder("latest")), "ep2-ba20");
  EXPECT_EQ(newest().folder, folder("ep2-ba20"));
}

TEST_F(CheckpointTest, LatestIsPreferredToALaterBatch) {  // a run that resumed from an older checkpoint
  write("ep2-ba20", 2, R"({"run":1})");
  write("ep1-ba10", 2, R"({"run":2})");
  EXPECT_EQ(newest().folder, folder("ep1-ba10"));
}

TEST_F(CheckpointTest, NewestIsByBatchNotByName) {
  for (const char* name : {"ep1-ba9", "ep10-ba100", "ep2-ba20"}) write(name);
  std::filesystem::remove(folder("latest"));
  EXPECT_THAT(published_checkpoints(disk_, scratch_.path("checkpoints")),
              ElementsAre("ep1-ba9", "ep2-ba20", "ep10-ba100"));
  EXPECT_EQ(newest().folder, folder("ep10-ba100"));
}

TEST_F(CheckpointTest, TruncatedFileIsNamedAndTheOlderUsed) {
  expect_older_used("rank-1.h5", "truncated at 1000 of ",
                    [](const std::string& path) { std::filesystem::resize_file(path, 1000); });
}

TEST_F(CheckpointTest, TornFileIsNamedAndTheOlderUsed) {  // a page that never reached the disk
  expect_older_used("rank-0.h5", "hash", [](const std::string& path) {
    write_text(path, read_text(path).replace(8192, 4096, std::string(4096, '\0')));
  });
}

TEST_F(CheckpointTest, FlippedBitIsNamedAndTheOlderUsed) {
  expect_older_used("rank-0.h5", "hash", [](const std::string& path) { flip_bit(path, 20'000); });
}

TEST_F(CheckpointTest, FlippedBitInTheViewerIsNamedAndTheOlderUsed) {
  expect_older_used("checkpoint.h5", "hash", [](const std::string& path) { flip_bit(path, 2000); });
}

TEST_F(CheckpointTest, MissingFileIsNamedAndTheOlderUsed) {
  expect_older_used("rank-1.h5", "missing", [](const std::string& path) { std::filesystem::remove(path); });
}

TEST_F(CheckpointTest, MissingManifestIsNamedAndTheOlderUsed) {
  expect_older_used("manifest.json", "never finished",
                    [](const std::string& path) { std::filesystem::remove(path); });
}

TEST_F(CheckpointTest, TruncatedManifestIsNamedAndTheOlderUsed) {
  expect_older_used("manifest.json", "torn",
                    [](const std::string& path) { std::filesystem::resize_file(path, 700); });
}

TEST_F(CheckpointTest, EveryFlippedBitOfTheManifestIsFound) {
  write("ep1-ba10", 1);
  const std::string path = folder("ep1-ba10/manifest.json"), good = read_text(path);
  for (size_t i = 0; i < good.size(); ++i) {
    flip_bit(path, i);
    EXPECT_THROW(read_manifest(disk_, folder("ep1-ba10")), OperatingError) << "byte " << i;
    write_text(path, good);
  }
  EXPECT_NO_THROW(read_manifest(disk_, folder("ep1-ba10")));
}

TEST_F(CheckpointTest, AnUnfinishedCheckpointIsIgnored) {
  write("ep1-ba10");
  write_rank_file(disk_, folder("ep2-ba20.unfinished"), 0, pieces_of(sample_tensors(), 0, 2));
  EXPECT_THAT(published_checkpoints(disk_, scratch_.path("checkpoints")), ElementsAre("ep1-ba10"));
  EXPECT_EQ(newest().folder, folder("ep1-ba10"));
  EXPECT_TRUE(named_.empty());
}

TEST_F(CheckpointTest, FilesOfAnEarlierAttemptAreNotPublished) {
  write_rank_file(disk_, folder("ep1-ba10.unfinished"), 3, pieces_of(sample_tensors(), 3, 4));
  write("ep1-ba10", 2);
  EXPECT_FALSE(disk_.exists(folder("ep1-ba10/rank-3.h5")));
}

TEST_F(CheckpointTest, PublishingAgainReplacesTheOlder) {
  write("ep1-ba10", 2, R"({"run":1})");
  write("ep1-ba10", 3, R"({"run":2})");
  EXPECT_EQ(read_checkpoint(disk_, folder("ep1-ba10")).state, R"({"run":2})");
  EXPECT_THAT(disk_.list(scratch_.path("checkpoints")), ElementsAre("ep1-ba10", "latest"));
}

TEST_F(CheckpointTest, MissingRowsAreNamed) {
  CheckpointManifest manifest;
  const std::string unfinished = folder("ep1-ba10.unfinished");
  manifest.files.push_back(write_rank_file(disk_, unfinished, 0, pieces_of(sample_tensors(), 0, 2)));
  publish_checkpoint(disk_, unfinished, folder("ep1-ba10"), manifest);
  const auto why = message_of<OperatingError>([&] { read_checkpoint(disk_, folder("ep1-ba10")); });
  EXPECT_THAT(why, AllOf(HasSubstr("ep1-ba10"), HasSubstr("its pieces hold")));
}

TEST_F(CheckpointTest, AnEmptyFolderHasNoNewestCheckpoint) {
  EXPECT_EQ(newest().folder, "");
  EXPECT_TRUE(named_.empty());
}

TEST_F(CheckpointTest, IsFoundByItsFolderItsRunsAndThatOfAllCheckpoints) {
  write("ep1-ba10");
  write("ep2-ba20");
  const auto found = [this](const std::string& path) { return find_checkpoint(disk_, path, {{}}).folder; };
  EXPECT_EQ(found(folder("ep1-ba10")), folder("ep1-ba10"));
  EXPECT_EQ(found(scratch_.path("checkpoints")), folder("ep2-ba20"));
  EXPECT_EQ(found(scratch_.path(".")), scratch_.path("./checkpoints/ep2-ba20"));
}

TEST_F(CheckpointTest, AreFoundWhateverTheyAreCalled) {
  write("best", 2, state_after(30));
  write("zero", 2, state_after(4));
  disk_.symlink("best", folder("newest"));
  const auto found = checkpoints_at(disk_, scratch_.path("checkpoints"));
  EXPECT_THAT(found, ElementsAre(folder("best"), folder("zero")));
  EXPECT_EQ(find_checkpoint(disk_, scratch_.path("."), {{}}).folder, scratch_.path("./checkpoints/best"));
}

TEST_F(CheckpointTest, CheckpointsOutsideThePatternAreIgnored) {
  write("ep9-ba90", 2, R"({"run":1})");
  write("mine-ba10", 2, R"({"run":2})");
  write("mine-ba9", 2, R"({"run":3})");
  disk_.symlink("mine-ba9", folder("newest"));
  const CheckpointNames names("{run_name}-ba{batch}", "mine");
  EXPECT_THAT(published_checkpoints(disk_, scratch_.path("checkpoints"), names),
              ElementsAre("mine-ba9", "mine-ba10"));
  const auto newest = [&](const std::string& latest) {
    return newest_good_checkpoint(disk_, scratch_.path("checkpoints"), {{}}, {names, latest}).folder;
  };
  EXPECT_EQ(newest(""), folder("mine-ba10"));
  EXPECT_EQ(newest("newest"), folder("mine-ba9"));
}

TEST_F(CheckpointTest, FindingNoneSaysWhatIsMissing) {
  write("ep1-ba10");
  disk_.remove_all(folder("ep1-ba10/manifest.json"));
  const auto why = [this](const std::string& path) {
    return message_of<OperatingError>([&] { find_checkpoint(disk_, path, {[](const std::string&) {}}); });
  };
  EXPECT_THAT(why(folder("ep1-ba10")), HasSubstr("ep1-ba10/manifest.json: missing"));
  EXPECT_THAT(why(scratch_.path("checkpoints")), HasSubstr("there is no good checkpoint"));
  EXPECT_THAT(why(scratch_.path("nowhere")),
              HasSubstr("nowhere: there is no such folder; expected that of a checkpoint or of a run"));
}

TEST_F(CheckpointTest, CheckpointsOfOtherProgramsAreToBeImported) {
  const auto why = [this](const std::string& path) {
    return message_of<OperatingError>(
        [&] { find_checkpoint(disk_, scratch_.path(path), {[](const std::string&) {}}); });
  };
  disk_.make_folders(scratch_.path("checkpoint-6"));
  write_text(scratch_.path("checkpoint-6/config.json"), "{}");
  write_text(scratch_.path("last.ckpt"), "PK");
  EXPECT_THAT(why("checkpoint-6"), HasSubstr("tutti import " + scratch_.path("checkpoint-6")));
  EXPECT_THAT(why("last.ckpt"), HasSubstr("load_path takes it as it is"));
}

TEST_F(CheckpointTest, RemainsOfAKilledWriterAreRemoved) {
  write("ep1-ba10");
  write_rank_file(disk_, folder(".ep2-ba20-77"), 0, pieces_of(sample_tensors(), 0, 2));
  disk_.make_folders(folder("ep1-ba10.replaced"));
  remove_unpublished(disk_, scratch_.path("checkpoints"));
  EXPECT_THAT(disk_.list(scratch_.path("checkpoints")), ElementsAre("ep1-ba10", "latest"));
}

// Killed between the two renames.
TEST_F(CheckpointTest, AReplacedCheckpointReturnsIfItsSuccessorIsMissing) {
  write("ep1-ba10");
  disk_.rename(folder("ep1-ba10"), folder("ep1-ba10.replaced"));
  restore_replaced(disk_, scratch_.path("checkpoints"));
  remove_unpublished(disk_, scratch_.path("checkpoints"));
  EXPECT_EQ(newest().folder, folder("ep1-ba10"));
}

TEST_F(CheckpointTest, ARemovedCheckpointIsGone) {
  write("ep1-ba10");
  remove_checkpoint(disk_, folder("ep1-ba10"));
  EXPECT_FALSE(disk_.exists(folder("ep1-ba10")));
  EXPECT_EQ(newest().folder, "");
  remove_checkpoint(disk_, folder("ep1-ba10"));
}

TEST_F(CheckpointTest, DigestDistinguishesNamesShapesDtypesAndValues) {
  const at::Tensor tensor = at::arange(6, at::kFloat);
  const std::map<std::string, at::Tensor> base = {{"model/a", tensor}};
  const uint64_t digest = digest_of(base);
  at::Tensor other = tensor.clone();
  other[5] = 7;
  EXPECT_NE(digest_of({{"model/b", tensor}}), digest);
  EXPECT_NE(digest_of({{"model/a", tensor.reshape({2, 3})}}), digest);
  EXPECT_NE(digest_of({{"model/a", tensor.view(at::kInt)}}), digest);
  EXPECT_NE(digest_of({{"model/a", other}}), digest);
  EXPECT_EQ(digest_of({{"model/a", tensor.clone()}, {"optimizers/a/m", other}}, kModelPrefix), digest);
}

}  // namespace
}  // namespace tutti
