#include "io/foreign/foreign_checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/saved_state.h"
#include "io/weights/torch_writer.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/io/weights/torch_archive.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kComposers = TUTTI_SOURCE_DIR "/tests/golden/composer_checkpoints";

class ForeignCheckpointTest : public testing::Test {
 protected:
  std::string refused(const std::string& path) {
    return message_of<UserError>([&] { foreign_checkpoint(disk_, path); });
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::string path_ = scratch_.path("a.pt");
};

TEST_F(ForeignCheckpointTest, CodeIsNotRun) {
  const std::string call = Pickled::call(Pickled::global("posix", "system"), Pickled::text("touch ran"));
  write_torch_archive(path_, Pickled::whole(call));
  EXPECT_THAT(refused(path_), AllOf(HasSubstr(path_), HasSubstr("'posix.system'")));
  write_text(scratch_.path(".metadata"), Pickled::whole(call));
  EXPECT_THAT(refused(scratch_.path("")), AllOf(HasSubstr(".metadata"), HasSubstr("'posix.system'")));
}

TEST_F(ForeignCheckpointTest, WithoutWeightsNamesWhatWasLookedFor) {
  write_torch_archive(path_, Pickled::whole(Pickled::dict(Pickled::text("config") + Pickled::number(1))));
  EXPECT_THAT(refused(path_), AllOf(HasSubstr("looked for"), HasSubstr("model_state_dict"),
                                    HasSubstr("its keys are 'config'")));
}

// 45 lists, each twice in the next: 2^44 of them, written out.
TEST_F(ForeignCheckpointTest, OfListsInListsIsRefused) {
  std::string bytes = "\x80\x02}" + Pickled::text("model") + std::string("]q\0", 3);
  for (char i = 1; i < 45; ++i)
    bytes += std::string("0]q") + i + "(h" + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "e";
  write_torch_archive(path_, bytes + "s.");
  EXPECT_THAT(refused(path_), HasSubstr("too many objects"));
}

// 2000 calls, each with a copy of a list of 2000 numbers.
TEST_F(ForeignCheckpointTest, OfListsThatAreCopiedIsRefused) {
  std::string copies, numbers;
  for (int i = 0; i < 2000; ++i) copies += std::string("h\1h\0\x85R0", 7), numbers += Pickled::number(1);
  write_torch_archive(path_, "\x80\x02]" + std::string("q\0(", 3) + numbers + "e0" +
                                 Pickled::global("collections", "deque") + "q\1" + "0" + copies + "}.");
  EXPECT_THAT(refused(path_), HasSubstr("too many objects"));
}

TEST_F(ForeignCheckpointTest, OfTooManyMetadataIsRefused) {
  write_text(scratch_.path(".metadata"), "");
  std::filesystem::resize_file(scratch_.path(".metadata"), (64 << 20) + 1);
  EXPECT_THAT(refused(scratch_.path("")), HasSubstr("at most 67108864"));
}

std::string pickled_object(const std::string& kind, const std::string& attributes) {
  return Pickled::global("torch.distributed.checkpoint.metadata", kind) + ")\x81" +
         Pickled::dict(attributes) + "b";
}

TEST_F(ForeignCheckpointTest, OfDeepMetadataIsRefused) {
  std::string keys;
  for (int i = 0; i < 65; ++i) keys += Pickled::text("a");
  const std::string name = Pickled::text("w");
  write_text(
      scratch_.path(".metadata"),
      Pickled::whole(pickled_object(
          "Metadata", Pickled::text("storage_data") + "}" + Pickled::text("state_dict_metadata") +
                          Pickled::dict(name + pickled_object("BytesStorageMetadata", name + name)) +
                          Pickled::text("planner_data") + Pickled::dict(name + Pickled::tuple(keys)))));
  EXPECT_THAT(refused(scratch_.path("")), HasSubstr("more than 64 keys"));
}

// A step may be a tensor; what else stands there is named.
TEST_F(ForeignCheckpointTest, OfPytorchHasItsTime) {
  const std::string weight = Pickled::tensor(Pickled::storage("FloatStorage", "0", 1), 0, Pickled::number(1),
                                             Pickled::number(1)),
                    step = Pickled::call(Pickled::global("torch._utils", "_rebuild_tensor_v2"),
                                         Pickled::storage("LongStorage", "1", 1) + Pickled::number(0) + ")" +
                                             ")" + "\x89" + Pickled::ordered_dict());
  write_torch_archive(
      path_,
      Pickled::whole(Pickled::dict(Pickled::text("step") + step + Pickled::text("model") +
                                   Pickled::dict(Pickled::text("w") + weight) + Pickled::text("args") + "}")),
      {{"0", std::string(4, '\0')}, {"1", std::string("\7\0\0\0\0\0\0\0", 8)}});
  const RunState state = state_of(foreign_checkpoint(disk_, path_));
  EXPECT_EQ(state.time.batch, 7);
  EXPECT_EQ(state.imported.weights, std::vector<std::string>{"w"});
  EXPECT_EQ(state.imported.left_behind, std::vector<std::string>{"'args'"});
}

TEST_F(ForeignCheckpointTest, OfATruncatedShardNamesTheFile) {
  std::filesystem::copy(kComposers / "sharded", scratch_.path("sharded"));
  const std::string shard = scratch_.path("sharded/__1_0.distcp");
  std::filesystem::resize_file(shard, 20'000);
  EXPECT_THAT(refused(scratch_.path("sharded")), HasSubstr(shard));
}

// A shard that was cut after the manifest was made.
TEST_F(ForeignCheckpointTest, FilesThatChangeLaterAreSeen) {
  std::filesystem::copy(kComposers / "whole.pt", path_);
  const Checkpoint checkpoint = foreign_checkpoint(disk_, path_);
  write_manifest(disk_, scratch_.path("imported"), checkpoint.manifest);
  const Checkpoint imported = open_checkpoint(disk_, scratch_.path("imported"));
  verify_files(disk_, imported);
  std::filesystem::resize_file(path_, 1000);
  EXPECT_THAT(message_of<OperatingError>([&] { verify_files(disk_, imported); }),
              AllOf(HasSubstr(path_), HasSubstr("truncated")));
}

TEST_F(ForeignCheckpointTest, OfComposerHasItsTimeAndRate) {
  for (const char* name : {"whole.pt", "sharded"}) {
    const RunState state = state_of(foreign_checkpoint(disk_, kComposers / name));
    EXPECT_EQ(state.imported.program, "Composer 0.32.1");
    EXPECT_EQ(state.time.batch, 10);
    EXPECT_EQ(state.time.epoch, 1);
    EXPECT_EQ(state.time.batch_in_epoch, 3);
    EXPECT_EQ(state.time.sample, 80);
    EXPECT_GT(state.time.total_wct, 0);
    EXPECT_EQ(state.global_batch, 8);
    EXPECT_NEAR(state.lagging_rate, 0.01793353340291235 / 0.02, 1e-12);
  }
}

TEST_F(ForeignCheckpointTest, ReadsWhatIsWrittenForTorch) {
  const std::map<std::string, at::Tensor> tensors{{"a.weight", at::arange(6, at::kFloat).reshape({2, 3})},
                                                  {"b", at::tensor(int64_t{7})},
                                                  {"c", at::empty({0, 4}, at::kBFloat16)}};
  const MemoryTensors source(tensors);
  write_torch_file(disk_, path_, source.entries(), {"state", "model"},
                   [&](const std::string& name) { return tensors.at(name); });
  EXPECT_FALSE(disk_.exists(path_ + ".new"));
  const CheckpointTensors read(disk_, foreign_checkpoint(disk_, path_), kModelPrefix);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(read_all(read, name).equal(tensor)) << name;
  EXPECT_EQ(read.entries().size(), tensors.size());
}

TEST_F(ForeignCheckpointTest, SafetensorsAreSharedOutWithAnIndex) {
  const std::map<std::string, at::Tensor> tensors{
      {"a", at::rand({4})}, {"b", at::rand({4})}, {"c", at::rand({40})}};
  const std::string path = scratch_.path("model.safetensors");
  EXPECT_EQ(write_safetensors_set(disk_, path, MemoryTensors(tensors).entries(), 32,
                                  [&](const std::string& name) { return tensors.at(name); }),
            2u);
  EXPECT_TRUE(disk_.exists(scratch_.path("model-00002-of-00002.safetensors")));
  const auto read = read_weights(scratch_.path(""));
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(read.at(name).equal(tensor)) << name;
}

// Readers prefer one whole file to an index.
TEST_F(ForeignCheckpointTest, NoPartOfAnEarlierSetIsLeft) {
  const std::string path = scratch_.path("set/model.safetensors");
  disk_.make_folders(scratch_.path("set"));
  for (const auto& [most, files] : {std::pair{200, 1}, {32, 4}, {64, 3}, {200, 1}}) {
    const std::map<std::string, at::Tensor> tensors{
        {"a", at::rand({8})}, {"b", at::rand({8})}, {"c", at::rand({8})}};
    write_safetensors_set(disk_, path, MemoryTensors(tensors).entries(), static_cast<uint64_t>(most),
                          [&](const std::string& name) { return tensors.at(name); });
    EXPECT_EQ(std::ssize(disk_.list(scratch_.path("set"))), files) << most;
    const auto read = read_weights(scratch_.path("set"));
    for (const auto& [name, tensor] : tensors) EXPECT_TRUE(read.at(name).equal(tensor)) << name << most;
  }
}

}  // namespace
}  // namespace tutti
