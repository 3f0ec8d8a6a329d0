// Files whose headers claim more than the file holds.
#include "io/hdf5/hdf5_open.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "io/hdf5/hdf5.h"
#include "io/hdf5/hdf5_writer.h"
#include "runtime/error.h"
#include "tests/io/hdf5/chunked_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Hdf5OpenTest : public testing::Test {
 protected:
  std::string why_not_sound() const {
    return message_of<UserError>([&] { Hdf5File(path_).require_sound("x"); });
  }
  void expect_refused(const std::string& why) {
    const auto names_it = AllOf(HasSubstr(path_ + ": dataset 'x' "), HasSubstr(why));
    EXPECT_THAT(why_not_sound(), names_it);
    EXPECT_THAT(message_of<UserError>([&] { Hdf5File(path_).read("x"); }), names_it);
    EXPECT_THAT(message_of<UserError>([&] { Hdf5File(path_).read_range("x", 0, 1); }), names_it);
    const ListedArray listed = list_hdf5(path_).at(0);
    EXPECT_THAT(message_of<UserError>([&] { first_rows(path_, listed, 1); }), names_it);
  }

  // Writes the virtual dataset x of numbers of sources.
  struct Mapping {
    std::string file, dataset;
    hsize_t first = 0, count = 4, of_source = 4;  // the source's first ones, of so many
    bool is_pattern = false;                      // of any number of sources
    bool grows = false;                           // with its source, from `first` on in steps of 2
    bool is_scattered = false;                    // in steps of 2
  };
  void write_virtual(const std::vector<Mapping>& mappings, hsize_t size) {
    const hid_t out = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t most = H5S_UNLIMITED;
    const hid_t space = H5Screate_simple(1, &size, &most), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(list, H5D_VIRTUAL);
    for (const Mapping& one : mappings) {
      const hsize_t none = 0, some = 1;
      const hsize_t two = 2;
      const hid_t from = H5Screate_simple(1, &one.of_source, one.grows ? &most : nullptr),
                  to = H5Scopy(space);
      H5Sselect_hyperslab(from, H5S_SELECT_SET, &none, nullptr, one.grows ? &most : &one.count, nullptr);
      if (one.grows) {
        H5Sselect_hyperslab(to, H5S_SELECT_SET, &one.first, &two, &most, nullptr);
      } else if (one.is_scattered) {
        H5Sselect_hyperslab(to, H5S_SELECT_SET, &one.first, &two, &one.count, nullptr);
      } else {
        const hsize_t* blocks = one.is_pattern ? &most : &some;
        H5Sselect_hyperslab(to, H5S_SELECT_SET, &one.first, &one.count, blocks, &one.count);
      }
      H5Pset_virtual(list, to, one.file.c_str(), one.dataset.c_str(), from);
      H5Sclose(to);
      H5Sclose(from);
    }
    const hid_t set = H5Dcreate2(out, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(out);
  }
  void write_virtual(const std::string& file, const std::string& dataset) {
    write_virtual({{file, dataset}}, 4);
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("x.h5");
  at::Tensor values_ = at::arange(40 * 64, at::kFloat).view({40, 64});
};

// libhdf5 copies as many bytes as the index says.
TEST_F(Hdf5OpenTest, SizesOfChunksWithoutFiltersAreThoseOfTheirShape) {
  for (const uint32_t bytes : {0u, 4u, 5 * 64 * 4u - 1, 5 * 64 * 4u + 1, 1'000'000u, 0xffffffffu}) {
    write_chunked(path_, "x", values_, {.chunk = {5, 64}});
    set_chunk_size(path_, 3, bytes);
    expect_refused("damaged");
  }
  set_chunk_size(path_, 3, 5 * 64 * 4);
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x"));
}

// One chunk has more, another has less by as much.
TEST_F(Hdf5OpenTest, OfChunksWithoutFiltersNoSizeIsTrusted) {
  write_chunked(path_, "x", values_, {.chunk = {5, 64}});
  set_chunk_size(path_, 3, 2 * 5 * 64 * 4);
  set_chunk_size(path_, 4, 0);
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), values_));
}

TEST_F(Hdf5OpenTest, SizesOfCompressedChunksFitTheFile) {
  for (const uint32_t bytes : {0u, 100'000u, 0xffffffffu}) {
    write_chunked(path_, "x", values_, {.chunk = {5, 64}, .gzip = true});
    set_chunk_size(path_, 3, bytes);
    EXPECT_THAT(message_of<UserError>([&] { Hdf5File(path_).read("x"); }),
                AllOf(HasSubstr(path_ + ": dataset 'x'"), HasSubstr("damaged")));
  }
}

TEST_F(Hdf5OpenTest, AFileHoldsWhatAnArrayIsByItsShape) {
  write_chunked(path_, "x", values_, {.chunk = {5, 64}, .claimed = {int64_t{1} << 40, 64}});
  expect_refused("[1099511627776, 64], 281,474,976,710,656 bytes, but the file has only 10,240 bytes of it");
  write_chunked(path_, "x", values_, {.chunk = {5, 64}, .gzip = true, .claimed = {400'000, 640}});
  expect_refused("[400000, 640], 1,024,000,000 bytes, but the file has only ");
  write_chunked(path_, "x", values_, {.chunk = {1, 1}, .rows_written = 0, .claimed = {40, int64_t{1} << 58}});
  expect_refused("more than 2^63 bytes");
  write_chunked(path_, "x", values_, {.chunk = {1, 1}, .rows_written = 0, .claimed = {4000, 4000}});
  expect_refused("has nothing of it");
}

TEST_F(Hdf5OpenTest, AnArrayInOnePieceIsThatLong) {
  PosixDisk disk;
  write_hdf5(disk, path_, {hdf5_array("x", at::zeros({61, 7}))});
  const std::string good = read_text(path_);
  const int64_t shape[] = {61, 7}, other[] = {61, 7 << 20};
  const std::string from(reinterpret_cast<const char*>(shape), sizeof shape);
  ASSERT_NE(good.find(from), good.npos);
  write_text(path_, std::string(good).replace(good.find(from), sizeof other,
                                              reinterpret_cast<const char*>(other), sizeof other));
  EXPECT_THAT(why_not_sound(), HasSubstr(path_ + ": dataset 'x' "));
}

TEST_F(Hdf5OpenTest, ASmallArrayMayMissMostOfItsRows) {
  write_chunked(path_, "x", values_,
                {.chunk = {5, 64}, .gzip = true, .rows_written = 1, .claimed = {4000, 64}});
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x"));
  write_chunked(path_, "x", values_, {.chunk = {5, 64}, .rows_written = 0});
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::zeros({40, 64})));
}

TEST_F(Hdf5OpenTest, ChunksAreNotFarLargerThanTheirArray) {
  write_chunked(path_, "x", values_, {.chunk = {1 << 20, 256}, .may_grow = true, .rows_written = 0});
  expect_refused("has chunks of [1048576, 256], 1,073,741,824 bytes, for data of [40, 64], 10,240 bytes");
  write_chunked(path_, "x", values_, {.chunk = {400, 64}, .gzip = true, .may_grow = true});
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x"));
}

TEST_F(Hdf5OpenTest, SourcesOfAVirtualArrayExist) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("a/y", at::ones({4}))});
  write_virtual("source.h5", "a/y");
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::ones({4})));
  write_virtual("none.h5", "a/y");
  expect_refused("needs the file 'none.h5', which does not exist");
  write_virtual("source.h5", "a/z");
  expect_refused("needs the dataset 'a/z' of the file 'source.h5', which does not exist");
  write_virtual(".", "a/y");
  expect_refused("needs the dataset 'a/y' of the file '.', which does not exist");
  write_virtual("source%%.h5", "100%%");
  expect_refused("needs the file 'source%.h5', which does not exist");
  write_text(scratch_.path("text.h5"), "no HDF5");
  write_virtual("text.h5", "y");
  expect_refused("needs the file 'text.h5', which cannot be read as an HDF5 file");
  write_virtual("none\n.h5", "y");
  expect_refused("'none\\n.h5'");
}

// libhdf5 would read zeros.
TEST_F(Hdf5OpenTest, AllNumbersOfAVirtualArrayAreMapped) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("y", at::ones({4}))});
  write_virtual({{"source.h5", "y", 0}, {"source.h5", "y", 4}}, 8);
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::ones({8})));
  write_virtual({{"source.h5", "y", 0}, {"source.h5", "y", 5}}, 9);
  expect_refused("is virtual, and no source is mapped to at least 1 of its numbers, which are [9]");
  write_virtual({{"source.h5", "y", 0}, {"source.h5", "y", 2}}, 8);  // as many as there are
  expect_refused("no source is mapped to at least 2 of its numbers, which are [8]");
  write_virtual({{"source.h5", "y", 0}, {"source.h5", "y", 2}}, 6);
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::ones({6})));
  write_virtual({}, 6);
  expect_refused("no source is mapped to at least 6 of its numbers, which are [6]");
}

TEST_F(Hdf5OpenTest, SourcesAreAsLargeAsWhatIsMapped) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("y", at::ones({4}))});
  write_virtual({{"source.h5", "y", 0, 2, 9}, {"source.h5", "y", 2, 5, 9}}, 7);
  expect_refused(
      "needs the dataset 'y' of the file 'source.h5', which is [4]: too small for the mapped data, "
      "up to [5]");
  write_virtual({{"source.h5", "y", 0, 4, 9}}, 4);
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::ones({4})));
}

TEST_F(Hdf5OpenTest, ThousandsOfMappingsAreCountedInTime) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("y", at::ones({4}))});
  std::vector<Mapping> mappings;
  for (hsize_t i = 0; i < 2'000; ++i) mappings.push_back({"source.h5", "y", 5 * i});
  write_virtual(mappings, 10'000);
  EXPECT_THAT(why_not_sound(), HasSubstr("no source is mapped to at least 2,000 of its numbers"));
}

TEST_F(Hdf5OpenTest, OfThousandsOfMappingsNoOverlapHidesAGap) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("y", at::ones({4}))});
  std::vector<Mapping> mappings;
  for (hsize_t i = 0; i < 1'500; ++i) mappings.push_back({"source.h5", "y", 4 * (i % 1'000)});
  write_virtual(mappings, 6'000);
  expect_refused("no source is mapped to at least 2,000 of its numbers, which are [6000]");
  write_virtual(mappings, 4'000);
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x"));
  for (hsize_t i = 0; i < 1'500; ++i)
    mappings[i] = {.file = "source.h5", .dataset = "y", .first = 2 * i, .count = 2};
  write_virtual(mappings, 3'000);
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x"));
  mappings[7].is_scattered = true;
  write_virtual(mappings, 3'000);
  expect_refused("1,500 mappings, and not all of whole rows: of more than 1,000 it is not known whether");
}

TEST_F(Hdf5OpenTest, VirtualArraysGrowWithTheirSources) {
  PosixDisk disk;
  const std::string source = scratch_.path("source.h5"), other = scratch_.path("other.h5");
  write_hdf5(disk, source, {hdf5_array("y", at::arange(6, at::kFloat))});
  write_hdf5(disk, other, {hdf5_array("y", at::arange(6, 12, at::kFloat))});
  const auto grown = [](const char* file, hsize_t first) {
    return Mapping{.file = file, .dataset = "y", .first = first, .grows = true};
  };
  write_virtual({grown("source.h5", 0), grown("other.h5", 1)}, 8);
  EXPECT_TRUE(
      at::equal(Hdf5File(path_).read("x"), at::arange(12, at::kFloat).view({2, 6}).t().reshape({12})));
  const Hdf5File opened(source);
  EXPECT_TRUE(at::equal(Hdf5File(path_).read_range("x", 10, 2), at::tensor({5.0f, 11.0f})))
      << "a file in use";
  write_hdf5(disk, other, {hdf5_array("y", at::zeros({3}))});
  expect_refused("is virtual, of sources that have [11] at most and [7] at least");
  std::filesystem::remove(other);
  expect_refused("needs the file 'other.h5', which does not exist");
}

// A source that is open is opened once more, in the same way.
TEST_F(Hdf5OpenTest, SourcesMayBeInUse) {
  PosixDisk disk;
  write_hdf5(disk, scratch_.path("source.h5"), {hdf5_array("y", at::ones({4}))});
  write_virtual("source.h5", "y");
  const Hdf5File source(scratch_.path("source.h5"));
  EXPECT_TRUE(at::equal(Hdf5File(path_).read("x"), at::ones({4})));
}

// Over all paths through the layers it would take 10^8 visits.
TEST_F(Hdf5OpenTest, SourcesOfManyPathsAreVisitedInTime) {
  PosixDisk disk;
  constexpr int kLayers = 8, kWidth = 10;
  write_hdf5(disk, scratch_.path("0.h5"), {hdf5_array("x", at::ones({kWidth}))});
  for (int layer = 1; layer <= kLayers; ++layer) {
    std::vector<Mapping> mappings;
    for (hsize_t i = 0; i < kWidth; ++i)
      mappings.push_back({std::to_string(layer - 1) + ".h5", std::string(i, '/') + 'x', i, 1});
    write_virtual(mappings, kWidth);
    std::filesystem::rename(path_, scratch_.path(std::to_string(layer) + ".h5"));
  }
  EXPECT_NO_THROW(Hdf5File(scratch_.path("8.h5")).require_sound("x"));
}

TEST_F(Hdf5OpenTest, SourcesOfSourcesExist) {
  write_virtual("none.h5", "y");
  std::filesystem::rename(path_, scratch_.path("between.h5"));
  write_virtual("between.h5", "x");
  EXPECT_THAT(why_not_sound(),
              StartsWith(scratch_.path("between.h5") + ": dataset 'x' needs the file 'none.h5'"));
  write_virtual(".", "x");
  EXPECT_THAT(why_not_sound(), HasSubstr("is virtual in more than 8 layers"));
}

TEST_F(Hdf5OpenTest, ChunksOfSizeZeroEndTheProcessWithAnError) {
  const std::string path = std::string(TUTTI_SOURCE_DIR) + "/tests/io/hdf5/chunk_of_size_zero.h5";
  EXPECT_EXIT(list_hdf5(path), testing::ExitedWithCode(2), "chunk_of_size_zero.h5: .* chunks of size 0");
  EXPECT_EXIT(Hdf5File{path}, testing::ExitedWithCode(2), "chunk_of_size_zero.h5: .* chunks of size 0");
}

TEST_F(Hdf5OpenTest, PipesAreNeverWaitedFor) {
  const std::string pipe = scratch_.path("pipe.h5");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(is_hdf5(pipe));
  EXPECT_THAT(message_of<UserError>([&] { Hdf5File{pipe}; }), HasSubstr("is a pipe"));
  write_virtual("pipe.h5", "y");
  expect_refused("needs the file 'pipe.h5', which cannot be read");
  write_virtual({{.file = "pip%b.h5", .dataset = "y", .is_pattern = true}}, 4);
  std::filesystem::rename(pipe, scratch_.path("pip0.h5"));
  EXPECT_NO_THROW(Hdf5File(path_).require_sound("x")) << "of no source";
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("pip0.h5", "y", file, "linked", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_EQ(list_hdf5(path_).at(0).description(), ListedArray::kUnreadable);
}

TEST_F(Hdf5OpenTest, GroupsThatHoldThemselvesAreListedInTime) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/", file, "g", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/", file, "h", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_TRUE(list_hdf5(path_).empty());
}

// A dataset of a data file could show any file that its reader may read.
TEST_F(Hdf5OpenTest, NumbersInRawFilesAreNotRead) {
  const std::string raw = scratch_.path("raw"), why = "as raw bytes of '" + raw + "', which are not read";
  write_text(raw, std::string(16, '\0'));
  const auto write_external = [&](const std::string& path, const char* dataset) {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t four = 4;
    const hid_t space = H5Screate_simple(1, &four, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, raw.c_str(), 0, 16);
    H5Dclose(H5Dcreate2(file, dataset, H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
  };
  write_external(path_, "x");
  expect_refused(why);
  write_external(scratch_.path("s0.h5"), "y0");
  write_virtual("s0.h5", "y0");
  EXPECT_THAT(why_not_sound(), HasSubstr(why));
  for (const auto& [file, dataset] : {std::pair("s%b.h5", "y0"), {"s0.h5", "y%b"}, {"s%b.h5", "y%b"}}) {
    write_virtual({{.file = file, .dataset = dataset, .is_pattern = true}}, 4);
    EXPECT_THAT(why_not_sound(), HasSubstr(why)) << file << ' ' << dataset;
    EXPECT_THAT(message_of<UserError>([&] { Hdf5File(path_).read("x"); }), HasSubstr(why));
  }
  // libhdf5 looks for sources beside the file that a link leads to.
  std::filesystem::create_directory(scratch_.path("sub"));
  write_virtual("s0.h5", "y0");
  std::filesystem::rename(path_, scratch_.path("sub/v.h5"));
  std::filesystem::rename(scratch_.path("s0.h5"), scratch_.path("sub/s0.h5"));
  write_chunked(scratch_.path("s0.h5"), "y0", values_, {.chunk = {5, 64}});
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("sub/v.h5", "x", file, "linked", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(message_of<UserError>([&] { Hdf5File(path_, SoftLinks::kFollowed).read("linked"); }),
              HasSubstr(why));
}

// A file of weights is whole; that of data may be in parts.
TEST_F(Hdf5OpenTest, LinksToOtherFilesAreFollowedWhereSoftLinksAre) {
  write_chunked(scratch_.path("other.h5"), "y", values_, {.chunk = {5, 64}});
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "y", file, "linked", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_TRUE(Hdf5File(path_).datasets().empty());
  EXPECT_TRUE(at::equal(Hdf5File(path_, SoftLinks::kFollowed).read("linked"), values_));
}

TEST_F(Hdf5OpenTest, NamesWithControlCharactersAreNotListed) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate(H5S_SCALAR);
  for (const char* name : {"a", "b\nc", "\x1b[2Jd", "\xc2\x9b", "\xff",
                           "Gr\xc3\xb6\xc3\x9f"
                           "e"})
    H5Dclose(H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  EXPECT_EQ(Hdf5File(path_).names(),
            "Gr\xc3\xb6\xc3\x9f"
            "e, a");
  std::string all;
  for (const ListedArray& array : list_hdf5(path_)) all += array.path + ": " + array.description() + '\n';
  const std::string unnamable = std::string(": ") + ListedArray::kUnnamable + '\n';
  EXPECT_EQ(all, "\\x1b[2Jd" + unnamable +
                     "Gr\xc3\xb6\xc3\x9f"
                     "e: int32 []\na: int32 []\nb\\nc" +
                     unnamable + "\\x9b" + unnamable + "\xef\xbf\xbd" + unnamable);
}

}  // namespace
}  // namespace tutti
