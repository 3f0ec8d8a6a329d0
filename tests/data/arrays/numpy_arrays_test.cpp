#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/readers/token_dataset.h"
#include "io/formats/zip_file.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const std::string kSaved = TUTTI_SOURCE_DIR "/tests/golden/numpy/";
const std::vector<int64_t> kAsked = {6, 0, 3, 3};

class NumpyArraysTest : public testing::Test {
 protected:
  // The arrays of an archive as a folder of .npy files.
  std::string unpacked() {
    const ZipFile archive(kSaved + "stored.npz");
    for (const auto& member : archive.members()) {
      const auto content = archive.read(member);
      std::ofstream(scratch_.path(member.name), std::ios::binary)
          .write(reinterpret_cast<const char*>(content.bytes.data()),
                 static_cast<std::streamsize>(content.bytes.size()));
    }
    return scratch_.path();
  }
  static DatasetPtr data(const std::string& keys) {
    const Catalog catalog = train_data_catalog();
    const std::string recipe = "[data.train]\nkind = 'numpy'\nbatch_size = 1\n" + keys;
    return make_dataset(
        resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train"));
  }
  static std::string error_of(const std::string& keys) {
    return message_of<UserError>([&] { data(keys); });
  }

  Scratch scratch_;
};

TEST_F(NumpyArraysTest, ArchivesAndFoldersGiveTheArraysThatNumpySaved) {
  const at::Tensor rows = at::tensor(kAsked), twelve = at::arange(12).reshape({3, 4});
  for (const std::string& path : {kSaved + "stored.npz", kSaved + "deflated.npz", unpacked()}) {
    const DatasetPtr all = data("path = '" + path + "'\n");
    EXPECT_EQ(all->size(), 7);
    const Batch batch = all->get(kAsked, {});
    EXPECT_TRUE(at::equal(batch["images"], (rows.reshape({4, 1, 1}) * 30 + twelve).to(at::kByte)));
    EXPECT_TRUE(at::equal(batch["wide"],
                          (at::stack({rows * 2, rows * 2 + 1}, 1).to(at::kDouble) / 3).to(at::kFloat)));
    EXPECT_TRUE(at::equal(batch["narrow"], rows.to(at::kFloat) / 4));
    EXPECT_TRUE(at::equal(batch["labels"], rows % 3));
    EXPECT_TRUE(at::equal(batch["marks"], (rows % 2).eq(0)));
    const DatasetPtr named = data("path = '" + path + "'\narrays = {input = 'wide', target = 'labels'}\n");
    EXPECT_EQ(named->spec().classes, 3);
    EXPECT_EQ(named->spec().describe("input"), "float32 [2]");
    EXPECT_TRUE(at::equal(named->get(kAsked, {})["target"], rows % 3));
  }
}

TEST_F(NumpyArraysTest, NumbersAreFloat64UntilTheyAreNormalized) {
  const double times[] = {1.7e9, 1.7e9 + 7, 1.7e9 + 14};
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }";
  header += std::string(117 - header.size(), ' ') + '\n';
  write_text(scratch_.path("input.npy"), "\x93NUMPY\x01" + std::string(1, '\0') +
                                             static_cast<char>(header.size()) + std::string(1, '\0') +
                                             header +
                                             std::string(reinterpret_cast<const char*>(times), sizeof times));
  const std::string path = "path = '" + scratch_.path() + "'\n";
  const DatasetPtr normalized = data(path + "mean = 1.7e9\nstd = 7.0\n");
  EXPECT_TRUE(at::equal(normalized->get(std::vector<int64_t>{0, 1, 2}, {})["input"].flatten(),
                        at::tensor({0.F, 1.F, 2.F})));
  normalized->scan();
  EXPECT_EQ(data(path)->spec().describe("input"), "float32 [1]");
}

TEST_F(NumpyArraysTest, ErrorsNameFileAndArray) {
  const std::string path = "path = '" + kSaved + "stored.npz'\n";
  EXPECT_THAT(error_of(path + "arrays = {input = 'wid'}"),
              HasSubstr("no array 'wid'; did you mean 'wide'? It has images, labels, marks, narrow, wide"));
  EXPECT_THAT(error_of(path + "arrays = {input = 'wide', target = 'labels'}\nnum_classes = 2"),
              HasSubstr("stored.npz\": array 'labels', row 2: labels out of range: 2 is not in [0, 2)"));
  EXPECT_THAT(error_of("path = '" + std::filesystem::temp_directory_path().string() + "/no.npz'"),
              HasSubstr("no.npz"));
  EXPECT_THAT(error_of("path = '" + kSaved + "tokens.npy'"),
              HasSubstr("a single array (.npy): path is an .npz"));
  const std::string folder = unpacked();
  std::filesystem::resize_file(folder + "/wide.npy", 140);
  EXPECT_THAT(error_of("path = '" + folder + "'"), HasSubstr("wide.npy: array 'wide': truncated"));
  EXPECT_THAT(error_of("path = '" + kSaved + "..'"),
              HasSubstr("no arrays of numpy: an .npz file, or .npy files"));
}

// An archive with one member, which has more bytes than its array: 256 MB, deflated to 256 kB.
TEST_F(NumpyArraysTest, AMemberOfAnArchiveIsAsLongAsItsArray) {
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  const std::string array = read_text(kSaved + "tokens.npy");
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string all = array, data(std::size_t{1} << 21, '\0');
  all.resize(kBytes);
  stream.next_in = reinterpret_cast<Bytef*>(all.data()), stream.avail_in = static_cast<uInt>(all.size());
  stream.next_out = reinterpret_cast<Bytef*>(data.data()), stream.avail_out = static_cast<uInt>(data.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  data.resize(stream.total_out);
  deflateEnd(&stream);
  const auto number = [](uint64_t value, int bytes) {
    return std::string(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(bytes));
  };
  const std::string sizes =
      number(0, 4) + number(data.size(), 4) + number(kBytes, 4) + number(9, 2) + number(0, 2);
  const std::string member =
      "PK\3\4" + number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) + sizes + "input.npy" + data;
  const std::string directory = "PK\1\2" + number(20, 2) + number(20, 2) + number(0, 2) + number(8, 2) +
                                number(0, 4) + sizes + number(0, 6) + number(0, 8) + "input.npy";
  const std::string end = "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
                          number(directory.size(), 4) + number(member.size(), 4) + number(0, 2);
  write_text(scratch_.path("a.npz"), member + directory + end);
  const std::string error = error_of("path = '" + scratch_.path("a.npz") + "'");
  EXPECT_THAT(error, HasSubstr("a.npz: array 'input': the array has "));
  EXPECT_THAT(error, HasSubstr(", and the archive 268,435,456 under its name: damaged"));
}

TEST_F(NumpyArraysTest, TokensMayBeAnArray) {
  const TokenDataset data({.path = kSaved + "tokens.npy", .format = {}, .sequence_length = 4});
  EXPECT_EQ(data.size(), 4);
  EXPECT_EQ(data.spec().classes, 133'001);
  EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{1}, {})["target"][0], at::arange(5, 9) * 7'000));
}

}  // namespace
}  // namespace tutti
