#include "io/hdf5/hdf5.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <xxhash.h>

#include <set>
#include <thread>

#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Hdf5Test : public testing::Test {
 protected:
  // train/input float32 [100, 2, 3], train/target int64 [100] with attributes, extra float64 scalar
  std::string write_sample() {
    const std::string path = scratch_.path("sample.h5");
    PosixDisk disk;
    written_ = write_hdf5(disk, path,
                          {hdf5_array("train/input", input_),
                           hdf5_array("train/target", at::arange(100, at::kLong),
                                      {{"num_classes", int64_t{10}}, {"scale", 0.5}, {"source", "UCI"}}),
                           hdf5_array("extra", at::scalar_tensor(2.5, at::kDouble))});
    return path;
  }

  // "x", whose rows lie in rank-0.h5; gives its path.
  std::string write_virtual() {
    PosixDisk disk;
    write_hdf5(disk, scratch_.path("rank-0.h5"), {hdf5_array("x", at::ones({4}))});
    const Hdf5VirtualArray array{"x", {4}, at::kFloat, {{"rank-0.h5", {0}, {4}}}};
    write_hdf5_view(disk, scratch_.path("virtual.h5"), {{array}, {}, {}});
    return scratch_.path("virtual.h5");
  }

  // The same rows as big-endian numbers: not readable at an offset, in chunks or not.
  std::string write_big_endian(bool chunked) {
    const std::string path = scratch_.path("big_endian.h5");
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t dims[] = {100, 2, 3}, chunk[] = {7, 2, 3};
    const hid_t space = H5Screate_simple(3, dims, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked) H5Pset_chunk(list, 3, chunk);
    const hid_t dataset = H5Dcreate2(file, "input", H5T_IEEE_F32BE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, input_.const_data_ptr());
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    return path;
  }

  Scratch scratch_;
  Hdf5Written written_;
  at::Tensor input_ = at::arange(600, at::kFloat).reshape({100, 2, 3});
};

TEST_F(Hdf5Test, AVirtualArrayWhoseFileIsMissingIsRefused) {
  const std::string path = write_virtual();
  EXPECT_TRUE(Hdf5File(path).read("x").equal(at::ones({4})));
  PosixDisk().remove_all(scratch_.path("rank-0.h5"));
  const Hdf5File file(path);
  const auto names_it = testing::ThrowsMessage<UserError>(AllOf(HasSubstr(path), HasSubstr("'rank-0.h5'")));
  EXPECT_THAT([&] { file.read("x"); }, names_it);
  EXPECT_THAT([&] { file.read_range("x", 1, 2); }, names_it);
}

// One after the other, and each alone.
TEST_F(Hdf5Test, AFileIsTheSameWhateverWasWrittenBefore) {
  const at::Tensor other = input_ + 1;
  const std::vector<std::vector<Hdf5Array>> files = {
      {hdf5_array("a", input_)},
      {hdf5_array("a", other)},
      {hdf5_array("a", other.reshape({100, 3, 2}))},
      {hdf5_array("b", other)},
      {hdf5_array("b", other.to(at::kInt))},
      {hdf5_array("b", other.to(at::kInt), {{"scale", 0.5}})},
      {hdf5_array("b", other.to(at::kInt), {{"scale", 0.25}})},
      {hdf5_array("b", other.to(at::kInt), {{"scale", "0.25"}})},
      {hdf5_array("b", other.to(at::kInt), {{"shift", "0.25"}})},
      {hdf5_array("b", other.to(at::kInt)), hdf5_array("c", input_)},
      {hdf5_array("b/c", other.to(at::kInt))},
  };
  PosixDisk disk;
  Hdf5Layout last;
  std::set<uint64_t> hashes;
  for (const auto& arrays : files) {
    const Hdf5Written after = write_hdf5(disk, scratch_.path("after.h5"), arrays, &last);
    const Hdf5Written alone = write_hdf5(disk, scratch_.path("alone.h5"), arrays);
    EXPECT_EQ(after.hash, alone.hash);
    EXPECT_EQ(after.offsets, alone.offsets);
    hashes.insert(after.hash);
  }
  EXPECT_EQ(hashes.size(), files.size());
}

TEST_F(Hdf5Test, AViewIsTheSameWhateverWasWrittenBefore) {
  using Arrays = std::vector<Hdf5VirtualArray>;
  const std::vector<std::pair<Arrays, Hdf5Links>> views = {
      {{{"a", {4}, at::kFloat, {{"0.h5", {0}, {4}}}}}, {}},
      {{{"a", {4}, at::kFloat, {{"1.h5", {0}, {4}}}}}, {}},
      {{{"a", {4}, at::kFloat, {{"1.h5", {0}, {2}}, {"0.h5", {2}, {2}}}}}, {}},
      {{{"a", {4}, at::kFloat, {{"1.h5", {0}, {1}}, {"0.h5", {1}, {3}}}}}, {}},
      {{{"a", {4}, at::kFloat, {{"1.h5", {0}, {1}}, {"0.h5", {1}, {3}}}}}, {{"x", "a"}}},
      {{{"a", {4}, at::kFloat, {{"1.h5", {0}, {1}}, {"0.h5", {1}, {3}}}}}, {{"y", "a"}}},
  };
  PosixDisk disk;
  Hdf5Layout last;
  std::set<uint64_t> hashes;
  for (const auto& [arrays, links] : views) {
    const Hdf5View view{arrays, {}, links};
    hashes.insert(write_hdf5_view(disk, scratch_.path("after.h5"), view, &last).hash);
    EXPECT_TRUE(hashes.contains(write_hdf5_view(disk, scratch_.path("alone.h5"), view).hash));
  }
  EXPECT_EQ(hashes.size(), views.size());
}

TEST_F(Hdf5Test, ListsWhatWasWritten) {
  const Hdf5File file(write_sample());
  ASSERT_EQ(file.datasets().size(), 3u);
  EXPECT_EQ(file.datasets()[0].path, "extra");
  EXPECT_EQ(file.at("train/input").shape, (Shape{100, 2, 3}));
  EXPECT_EQ(file.at("train/target").dtype, at::kLong);
  const Hdf5Attributes attributes = file.at("train/target").attributes;
  EXPECT_EQ(std::get<int64_t>(attributes.at("num_classes")), 10);
  EXPECT_EQ(std::get<double>(attributes.at("scale")), 0.5);
  EXPECT_EQ(std::get<std::string>(attributes.at("source")), "UCI");
}

TEST_F(Hdf5Test, ReadsWholeDatasetsAndRows) {
  const Hdf5File file(write_sample());
  EXPECT_TRUE(at::equal(file.read("train/input"), input_));
  EXPECT_EQ(file.read("extra").item<double>(), 2.5);
  EXPECT_TRUE(at::equal(file.read_range("train/input", 90, 10), input_.narrow(0, 90, 10)));
  const std::vector<int64_t> rows = {99, 5, 6, 7, 0, 0};
  EXPECT_TRUE(at::equal(file.read_rows("train/input", rows), input_.index_select(0, at::tensor(rows))));
}

TEST_F(Hdf5Test, ReadsBigEndianRows) {
  const std::vector<int64_t> rows = {3, 4, 5, 6, 7, 8, 50, 2};
  for (const bool chunked : {true, false}) {
    const Hdf5File file(write_big_endian(chunked));
    EXPECT_FALSE(file.at("input").file_offset);
    EXPECT_TRUE(at::equal(file.read_rows("input", rows), input_.index_select(0, at::tensor(rows))));
  }
}

TEST_F(Hdf5Test, OffsetsAreWhereTheBytesLie) {
  const std::string path = write_sample();
  const Hdf5File file(path);
  const std::string bytes = read_text(path);
  const uint64_t offset = file.at("train/input").file_offset.value();
  EXPECT_EQ(offset, written_.offsets[0]);
  EXPECT_EQ(std::memcmp(bytes.data() + offset, input_.const_data_ptr(), input_.nbytes()), 0);
}

TEST_F(Hdf5Test, WrittenHashIsThatOfTheFile) {
  const std::string bytes = read_text(write_sample());
  EXPECT_EQ(written_.bytes, bytes.size());
  EXPECT_EQ(written_.hash, XXH3_64bits(bytes.data(), bytes.size()));
}

TEST_F(Hdf5Test, DatasetsCarryNoTimes) {  // so that the same arrays give the same bytes
  const hid_t file = H5Fopen(write_sample().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  H5G_stat_t status{};
  EXPECT_GE(H5Gget_objinfo(file, "train/input", false, &status), 0);
  EXPECT_EQ(status.mtime, 0);
  H5Fclose(file);
}

TEST_F(Hdf5Test, EveryDtypeComesBack) {
  std::vector<Hdf5Array> arrays;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                           at::kChar, at::kByte, at::kUInt16, at::kUInt32, at::kUInt64, at::kBool}) {
    arrays.push_back(hdf5_array(c10::toString(dtype), at::arange(2, at::kLong).to(dtype)));
  }
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("dtypes.h5"), arrays);
  const Hdf5File file(scratch_.path("dtypes.h5"));
  for (const Hdf5Array& array : arrays) {
    EXPECT_EQ(file.at(array.path).dtype, array.dtype) << array.path;
    EXPECT_TRUE(at::equal(file.read(array.path), array.tensor)) << array.path;
  }
}

TEST_F(Hdf5Test, ManyDatasetsAndLargeOnesKeepTheirPlaces) {
  std::vector<Hdf5Array> arrays;
  for (int64_t i = 0; i < 300; ++i) {
    arrays.push_back(hdf5_array("group" + std::to_string(i % 7) + "/" + std::to_string(i),
                                at::full({i % 50 == 0 ? 700'000 : i}, i, at::kFloat)));
  }
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("many.h5"), arrays);
  const Hdf5File file(scratch_.path("many.h5"));
  for (const Hdf5Array& array : arrays)
    ASSERT_TRUE(at::equal(file.read(array.path), array.tensor)) << array.path;
}

TEST_F(Hdf5Test, CheckpointsShowWholeTensors) {
  const std::string path = scratch_.path("ep1-ba1/checkpoint.h5");
  PosixDisk disk;
  write_checkpoint(disk, scratch_.path("ep1-ba1"), sample_tensors(), 3);
  const Hdf5File file(path);
  for (const auto& [name, tensor] : sample_tensors()) EXPECT_TRUE(at::equal(file.read(name), tensor)) << name;
  EXPECT_EQ(file.datasets().size(), sample_tensors().size());
}

// What a listing of the file shows too, which follows no links to other files.
TEST_F(Hdf5Test, CheckpointsHoldScalarsThemselves) {
  PosixDisk disk;
  write_checkpoint(disk, scratch_.path("ep1-ba1"), sample_tensors(), 3);
  std::filesystem::copy_file(scratch_.path("ep1-ba1/checkpoint.h5"), scratch_.path("alone.h5"));
  const Hdf5File file(scratch_.path("alone.h5"));
  EXPECT_EQ(file.read("optimizers/fc.bias/step").item<float>(), 58);
  EXPECT_EQ(file.read("model/bn.num_batches_tracked").item<int64_t>(), 57);
}

TEST_F(Hdf5Test, MissingFileIsNamed) {
  EXPECT_EQ(message_of<UserError>([&] { Hdf5File("/nowhere/a.h5"); }), "/nowhere/a.h5: no such file");
}

TEST_F(Hdf5Test, OtherFileIsNamed) {
  const std::string path = scratch_.path("text.h5");
  write_text(path, "this is text");
  EXPECT_THAT(message_of<UserError>([&] { Hdf5File{path}; }), AllOf(HasSubstr(path), HasSubstr("HDF5")));
}

TEST_F(Hdf5Test, TruncatedFileIsNamed) {
  const std::string path = write_sample();
  std::filesystem::resize_file(path, 3000);
  EXPECT_THAT(message_of<UserError>([&] { Hdf5File{path}; }), AllOf(HasSubstr(path), HasSubstr("truncated")));
}

TEST_F(Hdf5Test, MissingDatasetIsNamedWithWhatThereIs) {
  const Hdf5File file(write_sample());
  const auto why = message_of<UserError>([&] { file.read("train/inputs"); });
  EXPECT_THAT(why, AllOf(HasSubstr(file.path()), HasSubstr("'train/inputs'"),
                         HasSubstr("train/input, train/target")));
}

TEST_F(Hdf5Test, ErrorsAreNotPrinted) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(Hdf5File("/nowhere/a.h5"), UserError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Hdf5Test, ThreadsReadAtTheSameTime) {
  const std::string path = write_big_endian(true);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 50; ++turn) {
        const Hdf5File file(path);
        good += at::equal(file.read_range("input", i * 20 + turn % 10, 10),
                          input_.narrow(0, i * 20 + turn % 10, 10));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

}  // namespace
}  // namespace tutti
