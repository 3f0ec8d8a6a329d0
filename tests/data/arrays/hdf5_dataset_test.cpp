#include "data/arrays/hdf5_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <chrono>
#include <cmath>

#include "data/readers/class_names.h"
#include "io/hdf5/hdf5_writer.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/io/hdf5/chunked_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Hdf5DatasetTest : public testing::Test {
 protected:
  std::string write(const std::vector<Hdf5Array>& arrays) {
    PosixDisk disk;
    write_hdf5(disk, path_, arrays);
    return path_;
  }

  std::string write_with_labels(const at::Tensor& labels, Hdf5Attributes attributes = {}) {
    return write({hdf5_array("train/input", inputs_.narrow(0, 0, labels.size(0))),
                  hdf5_array("train/target", labels, std::move(attributes))});
  }

  std::string error_of(Hdf5Dataset::Options options) {
    return message_of<UserError>([&] { Hdf5Dataset{options}; });
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("data.h5");
  at::Tensor inputs_ = at::arange(100 * 6, at::kFloat).reshape({100, 1, 2, 3});
  at::Tensor labels_ = at::arange(100, at::kLong).remainder(10);
};

TEST_F(Hdf5DatasetTest, StacksTheRowsAskedFor) {
  const Hdf5Dataset data({.path = write_with_labels(labels_), .group = "train"});
  const std::vector<int64_t> rows = {99, 0, 7, 7};
  const Batch batch = data.get(rows, {});
  EXPECT_EQ(data.size(), 100);
  EXPECT_TRUE(at::equal(batch["input"], inputs_.index_select(0, at::tensor(rows))));
  EXPECT_TRUE(at::equal(batch["target"], labels_.index_select(0, at::tensor(rows))));
  EXPECT_EQ(data.get({}, {}).at("input").tensor().sizes(), (at::IntArrayRef{0, 1, 2, 3}));
}

// The other file has its array at another place.
TEST_F(Hdf5DatasetTest, FollowsALinkToAnotherFile) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("other.h5"), {hdf5_array("images", inputs_)});
  const hid_t file = H5Fopen(write_with_labels(labels_).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "images", file, "linked", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("no.h5", "images", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  const Hdf5Dataset data({.path = path_, .arrays = {"linked"}});
  const std::vector<int64_t> rows = {99, 0, 7, 7};
  EXPECT_TRUE(at::equal(data.get(rows, {})["linked"], inputs_.index_select(0, at::tensor(rows))));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"dangling"}}),
              HasSubstr("array 'dangling' is a link to images in no.h5, which is not there"));
}

TEST_F(Hdf5DatasetTest, SaysWhatAnArrayIsThatHasNoNumbers) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t rows = 3;
  const hid_t space = H5Screate_simple(1, &rows, nullptr);
  const hid_t ragged = H5Tvlen_create(H5T_NATIVE_INT32), complex = H5Tcreate(H5T_COMPOUND, 8);
  for (const auto& [part, at] : {std::pair("r", 0), {"i", 4}}) H5Tinsert(complex, part, at, H5T_NATIVE_FLOAT);
  for (const auto& [name, type] :
       {std::pair{"names", hid_t{H5T_C_S1}}, std::pair{"ragged", ragged}, std::pair{"complex", complex}})
    H5Dclose(H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Tclose(ragged);
  H5Tclose(complex);
  H5Sclose(space);
  H5Fclose(file);
  EXPECT_THAT(error_of({.path = path_, .arrays = {"names"}}),
              HasSubstr("array 'names' is text [3], and only integers"));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"ragged"}}), HasSubstr("is rows of different lengths [3]"));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"complex"}}), HasSubstr("is complex numbers [3]"));
}

// 32000 is h5py's lzf, which libhdf5 reads with a plugin only.
// Of the values 2, 0, 1, called by names in another order.
void write_enumeration(hid_t file, const std::string& path, hid_t integer,
                       const std::vector<std::pair<std::string, int>>& names,
                       const std::vector<int>& values) {
  const hid_t type = H5Tenum_create(integer);
  for (const auto& [name, value] : names) {
    int64_t number = value;
    H5Tconvert(H5T_NATIVE_INT, integer, 1, &number, nullptr, H5P_DEFAULT);
    H5Tenum_insert(type, name.c_str(), &number);
  }
  const hsize_t count = values.size();
  const hid_t space = H5Screate_simple(1, &count, nullptr), native = H5Tenum_create(H5T_NATIVE_INT);
  for (const auto& [name, value] : names) H5Tenum_insert(native, name.c_str(), &value);
  const hid_t dataset = H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset), H5Tclose(native), H5Sclose(space), H5Tclose(type);
}

TEST_F(Hdf5DatasetTest, EnumerationsAreTheirIntegersAndNameTheClasses) {
  const std::vector<std::pair<std::string, int>> names = {{"dog", 1}, {"cow", 2}, {"cat", 0}, {"eel", 3}};
  for (const hid_t integer : {H5T_STD_I8LE, H5T_STD_I32BE, H5T_STD_U16LE}) {
    const hid_t file =
        H5Fopen(write({hdf5_array("input", inputs_.narrow(0, 0, 3))}).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    write_enumeration(file, "target", integer, names, {2, 0, 1});
    write_enumeration(file, "gaps", integer, {{"a", 1}, {"b", 5}}, {1, 5, 5});
    H5Fclose(file);
    const Hdf5Dataset data({.path = path_});
    EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{0, 1, 2}, {})["target"], at::tensor({2, 0, 1})));
    EXPECT_EQ(data.spec().classes, 4);
    EXPECT_TRUE(
        at::equal(data.get(std::vector<int64_t>{0, 1, 2}, {})["gaps"].to(at::kLong), at::tensor({1, 5, 5})));
    const Setting section = parse_recipe("kind = 'hdf5'\npath = '" + path_ + "'\ngroup = '/'\n", "r.toml");
    EXPECT_THAT(class_names(section), ElementsAre("cat", "dog", "cow", "eel"));
    std::filesystem::remove(path_);
  }
}

TEST_F(Hdf5DatasetTest, FollowsSoftLinks) {
  const hid_t file = H5Fopen(write_with_labels(labels_).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_soft("/train/input", file, "input", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/train", file, "same", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/", file, "train/above", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_TRUE(
      at::equal(Hdf5Dataset({.path = path_, .arrays = {"input"}}).get(std::vector<int64_t>{3}, {})["input"],
                inputs_.narrow(0, 3, 1)));
  EXPECT_EQ(Hdf5Dataset({.path = path_, .group = "same"}).spec().shapes.size(), 2);
}

TEST_F(Hdf5DatasetTest, ArraysThatAreNotReadAreSaid) {
  hid_t file = H5Fopen(write({hdf5_array("target", labels_)}).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_external("gone.h5", "/x", file, "far", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/nothing", file, "near", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(Hdf5Dataset({.path = path_}).advice(),
              HasSubstr("2 arrays are left out: 'far' is a link to /x in gone.h5, which is not there; ..."));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"near"}}),
              HasSubstr("array 'near' is a link to /nothing, which is not in the file"));
  file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_soft("/nothing", file, "input", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(error_of({.path = path_}), HasSubstr("array 'input' is a link to /nothing, which is not in"));
}

TEST_F(Hdf5DatasetTest, MoreLinksInARowThanAreFollowedAreSaid) {
  const std::string name = std::filesystem::path(write({hdf5_array("target", labels_)})).filename();
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_soft("/input", file, "input", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/b", file, "a", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/a", file, "b", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external(name.c_str(), "/far", file, "far", H5P_DEFAULT, H5P_DEFAULT);
  for (int i = 1; i <= 17; ++i) {
    const std::string before = i == 1 ? "/target" : "/l" + std::to_string(i - 1);
    H5Lcreate_soft(before.c_str(), file, ("l" + std::to_string(i)).c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }
  H5Fclose(file);
  const std::string circular =
      ", and more than 16 links in a row are not followed: they are circular, or too many";
  EXPECT_EQ(Hdf5Dataset({.path = path_, .arrays = {"l16"}}).size(), 100);
  EXPECT_THAT(error_of({.path = path_, .arrays = {"l17"}}),
              HasSubstr("array 'l17' is a link to /l16" + circular));
  EXPECT_THAT(error_of({.path = path_}), HasSubstr("array 'input' is a link to /input" + circular));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"a"}}), HasSubstr("array 'a' is a link to /b" + circular));
  EXPECT_THAT(error_of({.path = path_, .arrays = {"far"}}),
              HasSubstr("array 'far' is a link to /far in " + name + circular));
}

TEST_F(Hdf5DatasetTest, NamesACompressionThatIsNotRead) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t rows = 3;
  const hid_t space = H5Screate_simple(1, &rows, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 1, &rows);
  H5Pset_filter(list, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);
  H5Dclose(H5Dcreate2(file, "input", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT));
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  EXPECT_THAT(error_of({.path = path_}),
              HasSubstr("array 'input' is compressed with filter 32000, which this HDF5 does not read"));
}

TEST_F(Hdf5DatasetTest, SpecNamesShapesWithoutTheSamples) {
  const Hdf5Dataset data({.path = write_with_labels(labels_), .group = "/train/"});
  EXPECT_EQ(data.spec().shapes, (std::map<std::string, Shape>{{"input", {1, 2, 3}}, {"target", {}}}));
  EXPECT_EQ(data.spec().dtypes,
            (std::map<std::string, at::ScalarType>{{"input", at::kFloat}, {"target", at::kLong}}));
  EXPECT_EQ(data.spec().classes, 10);
}

TEST_F(Hdf5DatasetTest, ClassesComeFromTheOptionThenTheAttributeThenTheLabels) {
  EXPECT_EQ(Hdf5Dataset({.path = write_with_labels(labels_), .group = "train"}).spec().classes, 10);
  write_with_labels(labels_, {{"num_classes", int64_t{20}}});
  EXPECT_EQ(Hdf5Dataset({.path = path_, .group = "train"}).spec().classes, 20);
  EXPECT_EQ(Hdf5Dataset({.path = path_, .group = "train", .num_classes = 30}).spec().classes, 30);
}

TEST_F(Hdf5DatasetTest, ArraysAreThoseNamed) {
  write({hdf5_array("image", inputs_), hdf5_array("target", labels_), hdf5_array("deep/other", labels_)});
  EXPECT_EQ(Hdf5Dataset({.path = path_}).get({}, {}).leaves().size(), 2u);
  const auto leaves = Hdf5Dataset({.path = path_, .arrays = {"target"}}).get({}, {}).leaves();
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].first, "target");
}

TEST_F(Hdf5DatasetTest, DtypesAreThoseThatModelsTake) {
  write({hdf5_array("double", at::ones({4}, at::kDouble)), hdf5_array("half", at::ones({4}, at::kHalf)),
         hdf5_array("tokens", at::ones({4, 3}, at::kInt)), hdf5_array("pixels", at::ones({4, 3}, at::kByte)),
         hdf5_array("target", at::ones({4}, at::kByte))});
  const Hdf5Dataset data({.path = path_});
  const Batch batch = data.get(std::vector<int64_t>{1, 2}, {});
  const std::map<std::string, at::ScalarType> want = {{"double", at::kFloat},
                                                      {"half", at::kFloat},
                                                      {"tokens", at::kLong},
                                                      {"pixels", at::kByte},
                                                      {"target", at::kLong}};
  for (const auto& [name, dtype] : want) {
    EXPECT_EQ(batch[name].scalar_type(), dtype) << name;
    EXPECT_EQ(data.spec().dtypes.at(name), dtype) << name;
    EXPECT_TRUE(batch[name].eq(1).all().item<bool>()) << name;
  }
}

TEST_F(Hdf5DatasetTest, ChunkedArraysGiveTheSameRows) {
  const std::vector<int64_t> rows = {42, 43, 3, 99};
  const at::Tensor want = inputs_.index_select(0, at::tensor(rows));
  for (const Shape& chunk : {Shape{9, 1, 2, 3}, Shape{9, 1, 1, 2}}) {
    write_chunked(path_, "input", inputs_, {.chunk = chunk, .gzip = true, .shuffle = true});
    const uint64_t digest = Hdf5Dataset({.path = path_}).digest();
    for (const size_t cache_bytes : {0, 1 << 20}) {
      const Hdf5Dataset data({.path = path_, .cache_bytes = cache_bytes});
      EXPECT_TRUE(at::equal(data.get(rows, {})["input"], want));
      EXPECT_EQ(data.digest(), digest);
    }
  }
}

TEST_F(Hdf5DatasetTest, LabelsOutOfRangeAreNamedWhenOpening) {
  labels_[73] = 10;
  write_with_labels(labels_, {{"num_classes", int64_t{10}}});
  EXPECT_THAT(error_of({.path = path_, .group = "train"}),
              AllOf(HasSubstr(path_), HasSubstr("train/target"), HasSubstr("row 73"),
                    HasSubstr("labels out of range: 10")));
  labels_[73] = -1;
  write_with_labels(labels_);
  EXPECT_THAT(error_of({.path = path_, .group = "train"}), HasSubstr("labels out of range: -1"));
}

TEST_F(Hdf5DatasetTest, IgnoredLabelsAreLegalAndNoClasses) {
  labels_[5] = -100;
  for (const at::Tensor& labels : {labels_, labels_.reshape({50, 2})}) {
    write_with_labels(labels);
    EXPECT_EQ(Hdf5Dataset({.path = path_, .group = "train"}).spec().classes, 10);
  }
  labels_[6] = 255;
  write_with_labels(labels_);
  EXPECT_EQ(Hdf5Dataset({.path = path_, .group = "train", .ignore_index = 255}).spec().classes, 10);
  const Hdf5Dataset ten({.path = path_, .group = "train", .num_classes = 10, .ignore_index = 255});
  EXPECT_NO_THROW(ten.scan());
  EXPECT_THAT(error_of({.path = path_, .group = "train", .num_classes = 10}),
              AllOf(HasSubstr("row 6: labels out of range: 255 is not in [0, 10)"),
                    HasSubstr("model.ignore_index = 255")));
}

TEST_F(Hdf5DatasetTest, BatchesHaveOtherNamesThanTheFile) {
  write({hdf5_array("train/images", inputs_), hdf5_array("train/labels", labels_.to(at::kByte)),
         hdf5_array("weights", inputs_)});
  const Hdf5Dataset data({.path = path_,
                          .group = "train",
                          .arrays = {"input", "target", "other"},
                          .stored_as = {{"input", "images"}, {"target", "labels"}, {"other", "/weights"}}});
  EXPECT_EQ(data.spec().describe("target"), "int64 number");
  EXPECT_EQ(data.spec().classes, 10);
  const Batch batch = data.get(std::vector<int64_t>{3}, {});
  EXPECT_TRUE(at::equal(batch["input"], inputs_.narrow(0, 3, 1)));
  EXPECT_TRUE(at::equal(batch["other"], inputs_.narrow(0, 3, 1)));
  const Hdf5Dataset::Options deep{
      .path = path_, .arrays = {"input"}, .stored_as = {{"input", "train/images"}}};
  EXPECT_EQ(Hdf5Dataset(deep).spec().describe("input"), "float32 [1, 2, 3]");
}

TEST_F(Hdf5DatasetTest, AnErrorForAMissingArrayListsTheFile) {
  write({hdf5_array("images", inputs_), hdf5_array("labels", labels_.to(at::kByte))});
  EXPECT_EQ(error_of({.path = path_, .arrays = {"image"}}),
            path_ +
                ": no array 'image'; did you mean 'images'? The file has images float32 [100, 1, 2, 3], "
                "labels uint8 [100]");
  EXPECT_THAT(error_of({.path = path_, .arrays = {"x"}}), HasSubstr("no array 'x'; the file has images"));
}

TEST_F(Hdf5DatasetTest, TargetsOfAnyWidthAreIntegers) {
  for (const auto dtype :
       {at::kByte, at::kChar, at::kShort, at::kInt, at::kUInt16, at::kUInt32, at::kUInt64}) {
    write({hdf5_array("target", labels_.to(dtype))});
    const at::Tensor read = Hdf5Dataset({.path = path_}).get(std::vector<int64_t>{7, 12}, {})["target"];
    EXPECT_EQ(read.scalar_type(), at::kLong) << dtype;
    EXPECT_TRUE(at::equal(read, at::tensor({7, 2}, at::kLong))) << dtype;
  }
}

TEST_F(Hdf5DatasetTest, AdviceIsForShuffledDataThatDoNotFitInTheCache) {
  const auto advice = [&](size_t cache_bytes) {
    return Hdf5Dataset({.path = path_, .cache_bytes = cache_bytes}).advice();
  };
  write_chunked(path_, "input", inputs_, {.chunk = {9, 1, 2, 3}, .gzip = true});
  EXPECT_EQ(advice(100 * 24), "");
  EXPECT_THAT(advice(100 * 24 - 1), AllOf(HasSubstr("'input' is stored in chunks of 9 samples (gzip)"),
                                          HasSubstr("cache_mb = 1 ")));
  write_chunked(path_, "input", inputs_, {.chunk = {1, 1, 2, 3}, .gzip = true});
  EXPECT_EQ(advice(0), "") << "a sample is decoded alone";
  write({hdf5_array("input", inputs_)});
  EXPECT_EQ(advice(0), "");
}

TEST_F(Hdf5DatasetTest, ALabelBeyondAnyNumberOfClassesIsNamed) {
  for (const int64_t label : {int64_t{1} << 40, INT64_MAX}) {
    labels_[8] = label;
    write_with_labels(labels_);
    EXPECT_THAT(error_of({.path = path_, .group = "train"}),
                AllOf(HasSubstr("row 8"), HasSubstr("labels out of range: " + std::to_string(label))));
  }
}

TEST_F(Hdf5DatasetTest, TokensCountAsClasses) {
  at::Tensor tokens = labels_.reshape({50, 2}).clone();
  tokens[7][1] = 41;
  const auto both = [&] {
    return std::vector{hdf5_array("input", tokens), hdf5_array("target", labels_.reshape({50, 2}))};
  };
  EXPECT_EQ(Hdf5Dataset({.path = write(both())}).spec().classes, 42);
  EXPECT_THAT(error_of({.path = path_, .num_classes = 41}),
              AllOf(HasSubstr("'input', row 7"), HasSubstr("41")));
  tokens[7][1] = -100;
  EXPECT_THAT(error_of({.path = write(both())}), AllOf(HasSubstr("'input', row 7"), HasSubstr("-100")));
}

TEST_F(Hdf5DatasetTest, RowsWithNothingInThemAreNamed) {
  write({hdf5_array("input", inputs_), hdf5_array("target", at::empty({100, 0}, at::kLong))});
  EXPECT_THAT(error_of({.path = path_}), AllOf(HasSubstr("'target'"), HasSubstr("has empty rows")));
}

TEST_F(Hdf5DatasetTest, ScanFindsValuesThatAreNotFinite) {
  inputs_[31][0][1][2] = std::nan("");
  const Hdf5Dataset data({.path = write_with_labels(labels_), .group = "train"});
  EXPECT_THAT(message_of<UserError>([&] { data.scan(); }),
              AllOf(HasSubstr(path_), HasSubstr("train/input"), HasSubstr("row 31"), HasSubstr("nan")));
  inputs_[31][0][1][2] = 1;
  EXPECT_NO_THROW(Hdf5Dataset({.path = write_with_labels(labels_), .group = "train"}).scan());
}

TEST_F(Hdf5DatasetTest, BadFilesAreNamed) {
  EXPECT_THAT(error_of({.path = "/nowhere.h5"}), HasSubstr("/nowhere.h5: no such file"));
  write_with_labels(labels_);
  EXPECT_THAT(error_of({.path = path_, .group = "valid"}), AllOf(HasSubstr(path_), HasSubstr("valid")));
  EXPECT_THAT(error_of({.path = path_, .group = "train", .arrays = {"inputs"}}), HasSubstr("'train/inputs'"));
  write({hdf5_array("input", inputs_), hdf5_array("target", labels_.narrow(0, 0, 99))});
  EXPECT_THAT(error_of({.path = path_}), AllOf(HasSubstr("has 99 rows"), HasSubstr("100")));
  write({hdf5_array("input", at::scalar_tensor(1))});
  EXPECT_THAT(error_of({.path = path_}), HasSubstr("scalar"));
  write({hdf5_array("input", at::empty({0, 3}))});
  EXPECT_THAT(error_of({.path = path_}), HasSubstr("no rows"));
}

TEST_F(Hdf5DatasetTest, DigestDistinguishesDatasets) {
  const auto digest = [&] { return Hdf5Dataset({.path = path_, .group = "train"}).digest(); };
  write_with_labels(labels_);
  const uint64_t first = digest();
  EXPECT_EQ(digest(), first);
  write_with_labels(labels_.narrow(0, 0, 99));
  EXPECT_NE(digest(), first);
  inputs_[0][0][0][0] = 5;
  write_with_labels(labels_);
  EXPECT_NE(digest(), first);
}

TEST_F(Hdf5DatasetTest, ABatchCostsMicroseconds) {
  const Hdf5Dataset data({.path = write_with_labels(labels_), .group = "train"});
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 64; ++i) rows.push_back(i * 37 % 100);
  double best_us = 1e9;
  for (int turn = 0; turn < 200; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    const Batch batch = data.get(rows, {});
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best_us = std::min(best_us, took.count());
  }
  RecordProperty("best_us", std::to_string(best_us));
  EXPECT_LT(best_us, 100);
}

}  // namespace
}  // namespace tutti
