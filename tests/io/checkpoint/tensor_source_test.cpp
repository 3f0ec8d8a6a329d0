#include "io/checkpoint/tensor_source.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "io/checkpoint/checkpoint_tensors.h"
#include "io/formats/safetensors.h"
#include "io/weights/weights.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/counting_disk.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Tensors = std::map<std::string, at::Tensor>;

class TensorSourceTest : public testing::Test {
 protected:
  std::string write(const Tensors& tensors, int world) {
    write_checkpoint(disk_, folder_, tensors, world);
    return folder_;
  }
  CheckpointTensors open() { return {disk_, open_checkpoint(disk_, folder_)}; }

  Scratch scratch_;
  CountingDisk disk_;
  std::string folder_ = scratch_.path("checkpoint");
};

TEST_F(TensorSourceTest, RowsOfAnyShareComeFromFilesOfAnyWorld) {
  for (const int world : {1, 2, 4}) {
    write(sample_tensors(), world);
    const auto source = open();
    EXPECT_EQ(source.entries().size(), sample_tensors().size());
    for (const auto& [name, tensor] : sample_tensors()) {
      EXPECT_EQ(source.at(name).shape, tensor.sizes().vec());
      EXPECT_EQ(source.at(name).dtype, tensor.scalar_type());
      for (int pieces = 1; pieces <= 4; ++pieces) {
        for (int index = 0; index < pieces; ++index) {
          const TensorRegion rows = region_of(tensor.sizes(), row_placement(tensor.sizes()), {pieces, index});
          const at::Tensor wanted = narrowed(tensor, rows).contiguous(), to = at::empty_like(wanted);
          disk_.reads.clear();
          source.read(name, rows, to);
          EXPECT_TRUE(to.equal(wanted)) << name << ' ' << world << ' ' << pieces << ' ' << index;
          EXPECT_EQ(disk_.bytes_of(""), wanted.nbytes());
        }
      }
    }
  }
}

TEST_F(TensorSourceTest, RowsGoIntoAnyStridesAndDtype) {
  const at::Tensor images = at::arange(6 * 4 * 3 * 5, at::kFloat).reshape({6, 4, 3, 5});
  write({{"w", images}}, 4);
  const auto source = open();
  const at::Tensor wanted = images.narrow(0, 1, 4);
  const at::Tensor last =
      at::empty({4, 4, 3, 5}, at::TensorOptions().memory_format(at::MemoryFormat::ChannelsLast));
  source.read("w", {{1, 0, 0, 0}, {4, 4, 3, 5}}, last);
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.equal(wanted));
  const at::Tensor wide = at::full({4, 4, 3, 9}, -1.0, at::kBFloat16);
  source.read("w", {{1, 0, 0, 0}, {4, 4, 3, 5}}, wide.narrow(3, 2, 5));
  EXPECT_TRUE(wide.narrow(3, 2, 5).equal(wanted.to(at::kBFloat16)));
  EXPECT_TRUE(wide.narrow(3, 0, 2).eq(-1).all().item<bool>() &&
              wide.narrow(3, 7, 2).eq(-1).all().item<bool>());
}

TEST_F(TensorSourceTest, AParameterThatIsTrainedIsReadAndItsVersionMoves) {
  write({{"w", at::ones({3})}}, 1);
  const at::Tensor to = at::zeros({3}).requires_grad_();
  const auto version = to._version();
  open().read("w", {{0}, {3}}, to);
  EXPECT_TRUE(to.requires_grad());
  EXPECT_TRUE(to.detach().equal(at::ones({3})));
  EXPECT_GT(to._version(), version);
}

TEST_F(TensorSourceTest, LargeTensorsGoThroughASmallBuffer) {
  const at::Tensor rows = at::arange(3'000'000, at::kFloat).reshape({3000, 10, 100});   // of 4 KB
  const at::Tensor slabs = at::arange(3'000'000, at::kFloat).reshape({2, 1500, 1000});  // of 6 MB
  write({{"rows", rows}, {"slabs", slabs}}, 2);
  const auto source = open();
  for (const auto& [name, tensor] : Tensors{{"rows", rows}, {"slabs", slabs}}) {
    disk_.reads.clear();
    const at::Tensor to = at::empty(tensor.sizes(), at::kDouble);
    source.read(name, whole_region(tensor.sizes()), to);
    EXPECT_TRUE(to.equal(tensor.to(at::kDouble))) << name;
    EXPECT_EQ(disk_.bytes_of(""), tensor.nbytes());
    EXPECT_LE(disk_.largest(), TensorSource::kBufferBytes);
    EXPECT_LE(disk_.reads.size(), 8U);
  }
}

// Pieces of columns: `columns` are their ends.
CheckpointManifest of_columns(Disk& disk, const std::string& folder, const at::Tensor& whole,
                              const std::vector<std::pair<int64_t, int64_t>>& columns) {
  CheckpointManifest manifest;
  for (const auto& [begin, end] : columns) {
    const at::Tensor piece = whole.narrow(1, begin, end - begin).contiguous();
    const auto rank = static_cast<int>(manifest.files.size());
    manifest.files.push_back(write_rank_file(
        disk, folder, rank,
        {{"w", whole.sizes().vec(), {0, begin, 0}, piece.sizes().vec(), piece.scalar_type(), piece}}));
  }
  return manifest;
}

TEST_F(TensorSourceTest, PiecesNeedNotBeWholeRows) {
  const at::Tensor whole = at::arange(6 * 10 * 2, at::kFloat).reshape({6, 10, 2});
  const auto manifest = of_columns(disk_, scratch_.path("new"), whole, {{0, 4}, {4, 5}, {5, 10}});
  publish_checkpoint(disk_, scratch_.path("new"), folder_, manifest);
  const auto source = open();
  disk_.reads.clear();
  const at::Tensor to = at::empty({3, 10, 2});
  source.read("w", {{2, 0, 0}, {3, 10, 2}}, to);
  EXPECT_TRUE(to.equal(whole.narrow(0, 2, 3)));
  EXPECT_EQ(disk_.bytes_of(""), to.nbytes());
}

// Regions need not be whole rows either, and no number beside a region is read.
TEST_F(TensorSourceTest, RegionsAreReadAlone) {
  const at::Tensor whole = at::arange(6 * 10 * 2, at::kFloat).reshape({6, 10, 2});
  const auto manifest = of_columns(disk_, scratch_.path("new"), whole, {{0, 4}, {4, 5}, {5, 10}});
  publish_checkpoint(disk_, scratch_.path("new"), folder_, manifest);
  const auto source = open();
  for (const TensorRegion& region :
       {TensorRegion{{1, 3, 0}, {4, 5, 2}}, TensorRegion{{1, 3, 1}, {4, 5, 1}},
        TensorRegion{{2, 0, 1}, {2, 10, 1}}, TensorRegion{{5, 9, 0}, {1, 1, 2}},
        TensorRegion{{6, 0, 0}, {0, 10, 2}}, TensorRegion{{0, 10, 0}, {6, 0, 2}}}) {
    disk_.reads.clear();
    const at::Tensor to = at::empty(region.extent, at::kDouble);
    source.read("w", region, to);
    EXPECT_TRUE(to.equal(narrowed(whole, region).to(at::kDouble))) << at::IntArrayRef(region.extent);
    EXPECT_EQ(disk_.bytes_of(""), static_cast<uint64_t>(to.numel()) * whole.element_size());
  }
}

TEST_F(TensorSourceTest, PiecesThatOverlapAreAnError) {
  const at::Tensor whole = at::arange(6 * 10 * 2, at::kFloat).reshape({6, 10, 2});
  const auto manifest = of_columns(disk_, scratch_.path("new"), whole, {{0, 5}, {0, 5}});
  publish_checkpoint(disk_, scratch_.path("new"), folder_, manifest);
  EXPECT_THAT(message_of<OperatingError>([&] { open(); }), HasSubstr("its pieces overlap"));
}

TEST_F(TensorSourceTest, NamesMayHaveTheirPrefixLeftOut) {
  write({{"model/a", at::ones({2})}, {"model/b", at::zeros({2})}, {"optimizers/a/m", at::ones({2})}}, 2);
  const CheckpointTensors model(disk_, open_checkpoint(disk_, folder_), kModelPrefix);
  EXPECT_THAT(model.entries(), UnorderedElementsAre(testing::Key("a"), testing::Key("b")));
  EXPECT_TRUE(read_all(model, "b").equal(at::zeros({2})));
}

TEST_F(TensorSourceTest, RanksVerifyEachFileOnce) {
  const Checkpoint checkpoint = open_checkpoint(disk_, write(sample_tensors(), 3));
  ASSERT_EQ(checkpoint.manifest.files.size(), 4U);  // with checkpoint.h5
  for (const int ranks : {1, 2, 3, 7}) {
    disk_.reads.clear();
    for (int rank = 0; rank < ranks; ++rank) verify_files(disk_, checkpoint, {ranks, rank});
    for (const RankFile& file : checkpoint.manifest.files)
      EXPECT_EQ(disk_.bytes_of("/" + file.file), file.bytes) << ranks << ' ' << file.file;
  }
  disk_.reads.clear();
  verify_files(disk_, checkpoint, {2, 1});
  EXPECT_EQ(disk_.bytes_of("/rank-1.h5") + disk_.bytes_of("/checkpoint.h5"), disk_.bytes_of(""));
  EXPECT_GT(disk_.bytes_of("/checkpoint.h5"), 0U);
}

TEST_F(TensorSourceTest, ARankFindsTheDamageInItsPart) {
  const Checkpoint checkpoint = open_checkpoint(disk_, write(sample_tensors(), 3));
  flip_bit(folder_ + "/rank-1.h5", 20'000);
  EXPECT_NO_THROW(verify_files(disk_, checkpoint, {2, 0}));
  EXPECT_THAT(message_of<OperatingError>([&] {
                verify_files(disk_, checkpoint, {2, 1});
              }),
              HasSubstr("rank-1.h5: corrupt"));
}

// By the definition: over texts with the hash of each tensor's bytes.
TEST_F(TensorSourceTest, TheDigestIsThatOfWholeTensors) {
  const Tensors tensors = {{"model/a", at::arange(1'000'003, at::kFloat)},
                           {"model/b", at::scalar_tensor(57, at::kLong)},
                           {"model/c", at::empty({0, 3}, at::kHalf)},
                           {"optimizers/a", at::ones({2})}};
  std::string text;
  for (const auto& [line, name] : std::map<std::string, std::string>{{"model/a float32 1000003 ", "model/a"},
                                                                     {"model/b int64 ", "model/b"},
                                                                     {"model/c float16 0 3 ", "model/c"}}) {
    const at::Tensor& tensor = tensors.at(name);
    text += line + std::to_string(XXH3_64bits(tensor.const_data_ptr(), tensor.nbytes())) + "\n";
  }
  const uint64_t wanted = XXH3_64bits(text.data(), text.size());
  EXPECT_EQ(tensors_digest(MemoryTensors(tensors), kModelPrefix), wanted);
  for (const int world : {1, 3}) {
    write(tensors, world);
    const auto source = open();
    disk_.reads.clear();
    EXPECT_EQ(tensors_digest(source, kModelPrefix), wanted) << world;
    EXPECT_LE(disk_.largest(), TensorSource::kBufferBytes / 4);
  }
}

TEST_F(TensorSourceTest, StridesInMemoryDoNotMatter) {
  const at::Tensor numbers = at::arange(6, at::kFloat).reshape({2, 3});
  const MemoryTensors source({{"t", numbers.t()}});
  EXPECT_TRUE(read_all(source, "t").equal(numbers.t()));
  EXPECT_EQ(tensors_digest(source), tensors_digest(MemoryTensors({{"t", numbers.t().contiguous()}})));
}

class WeightsTest : public TensorSourceTest {
 protected:
  // Rows 1 and 2 of a file's "w", in two ways; returns how many bytes of the file were read past libhdf5.
  uint64_t read_rows(const std::string& path) {
    const auto weights = open_weights(disk_, path);
    EXPECT_THAT(weights->entries(),
                UnorderedElementsAre(testing::Key("w"), testing::Key("step"), testing::Key("none")));
    disk_.reads.clear();
    const TensorRegion rows{{1, 0, 0}, {2, 3, 5}};
    const at::Tensor plain = at::empty({2, 3, 5}),
                     turned = at::empty({5, 3, 2}, at::kDouble).permute({2, 1, 0});
    weights->read("w", rows, plain);
    const uint64_t bytes = disk_.bytes_of("");
    EXPECT_TRUE(plain.equal(w_.narrow(0, 1, 2))) << path;
    weights->read("w", rows, turned);
    EXPECT_TRUE(turned.equal(w_.narrow(0, 1, 2).to(at::kDouble))) << path;
    EXPECT_EQ(read_all(*weights, "step").item<int64_t>(), 58) << path;
    EXPECT_EQ(read_all(*weights, "none").sizes(), at::IntArrayRef({0, 4})) << path;
    return bytes;
  }

  const at::Tensor w_ = at::arange(7 * 3 * 5, at::kFloat).reshape({7, 3, 5});
  const Tensors tensors_ = {
      {"w", w_}, {"step", at::scalar_tensor(58, at::kLong)}, {"none", at::empty({0, 4})}};
};

constexpr uint64_t kTwoRows = 2 * 3 * 5 * sizeof(float);

TEST_F(WeightsTest, OfSafetensorsAreReadByRows) {
  const std::string path = scratch_.path("w.safetensors");
  write_safetensors(disk_, path, {tensors_, {}});
  EXPECT_EQ(read_rows(path), kTwoRows);
}

TEST_F(WeightsTest, OfHdf5AreReadByRows) {
  std::vector<Hdf5Array> arrays;
  for (const auto& [name, tensor] : tensors_) arrays.push_back(hdf5_array(name, tensor));
  write_hdf5(disk_, scratch_.path("w.h5"), arrays);
  EXPECT_EQ(read_rows(scratch_.path("w.h5")), kTwoRows);
}

TEST_F(WeightsTest, OfACheckpointAreReadByRowsAndSoAreThoseOfItsViewer) {
  Tensors saved{{"optimizers/w/momentum_buffer", at::ones({2})}};
  for (const auto& [name, tensor] : tensors_) saved["model/" + name] = tensor;
  EXPECT_EQ(read_rows(write(saved, 3)), kTwoRows);
  EXPECT_EQ(read_rows(folder_ + "/checkpoint.h5"), 0U) << "virtual datasets are libhdf5's";
}

TEST_F(WeightsTest, RowsOfVirtualDatasetsMayBeLarge) {
  const at::Tensor slabs = at::arange(3'000'000, at::kFloat).reshape({2, 1500, 1000});
  const auto weights = open_weights(disk_, write({{"model/w", slabs}}, 2) + "/checkpoint.h5");
  const at::Tensor to = at::empty({1, 1500, 1000}, at::kDouble);
  weights->read("w", {{1, 0, 0}, {1, 1500, 1000}}, to);
  EXPECT_TRUE(to.equal(slabs.narrow(0, 1, 1).to(at::kDouble)));
}

}  // namespace
}  // namespace tutti
