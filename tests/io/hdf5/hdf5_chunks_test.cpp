#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "io/hdf5/hdf5.h"
#include "runtime/error.h"
#include "tests/io/hdf5/chunked_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Hdf5ChunksTest : public testing::Test {
 protected:
  at::Tensor read(int64_t first, int64_t count) const {
    const Hdf5File file(path_);
    at::Tensor rows = at::empty({count, 4, 5}, values_.scalar_type());
    file.read_rows_into("x", first, count, static_cast<std::byte*>(rows.mutable_data_ptr()));
    return rows;
  }

  // As libhdf5 reads them, and as they were written.
  void expect_rows(const ChunkedOptions& options) {
    write_chunked(path_, "x", values_, options);
    for (const auto& [first, count] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 11}, {3, 6}, {10, 1}, {4, 3}}) {
      const at::Tensor rows = read(first, count);
      EXPECT_TRUE(at::equal(rows, values_.narrow(0, first, count))) << first << " " << count;
      EXPECT_TRUE(at::equal(rows, Hdf5File(path_).read_range("x", first, count)));
    }
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("x.h5");
  at::Tensor values_ = at::arange(11 * 4 * 5, at::kInt).mul(70001).view({11, 4, 5});
};

std::string zlib_text(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  return out.substr(0, size);
}

TEST_F(Hdf5ChunksTest, RowsAreThoseThatLibhdf5Reads) {
  for (const Shape& chunk :
       {Shape{1, 4, 5}, Shape{3, 4, 5}, Shape{11, 4, 5}, Shape{3, 2, 5}, Shape{4, 3, 2}, Shape{1, 1, 1}})
    for (const bool gzip : {false, true})
      for (const bool shuffle : {false, true})
        expect_rows({.chunk = chunk, .gzip = gzip, .shuffle = shuffle});
  values_ = values_.to(at::kByte);
  expect_rows({.chunk = {3, 4, 2}, .gzip = true, .shuffle = true});
}

TEST_F(Hdf5ChunksTest, ChunksMayBeLargerThanWhatGrows) {
  expect_rows({.chunk = {16, 2, 10}, .gzip = true, .may_grow = true});
}

TEST_F(Hdf5ChunksTest, ChecksumsAreRemoved) {
  for (const bool gzip : {false, true})
    for (const bool shuffle : {false, true}) {
      expect_rows({.chunk = {3, 4, 5}, .gzip = gzip, .shuffle = shuffle, .checksum = true});
      EXPECT_TRUE(Hdf5File(path_).at("x").storage.decodable);
    }
  values_.zero_().narrow(0, 0, 1).fill_(-1);  // the sums of a chunk are 0xffff, or 0
  expect_rows({.chunk = {1, 4, 5}, .gzip = true, .checksum = true});
  values_ = at::full({11, 4, 5}, 255).to(at::kByte);
  expect_rows({.chunk = {1, 1, 5}, .checksum = true});
}

TEST_F(Hdf5ChunksTest, AnotherByteOrderIsConverted) {
  values_ = values_.to(at::kFloat);
  expect_rows({.chunk = {3, 4, 5}, .gzip = true, .shuffle = true, .big_endian = true});
}

TEST_F(Hdf5ChunksTest, ChunksThatGzipWouldNotShortenAreReadAsTheyAre) {
  values_ = at::randint(256, {11, 4, 5}, at::kByte);
  expect_rows({.chunk = {3, 4, 5}, .gzip = true, .shuffle = true});
}

TEST_F(Hdf5ChunksTest, ChunksThatDoNotExistAreOfTheFillValue) {
  const at::Tensor some = values_.clone();
  some.narrow(0, 6, 5).zero_();
  write_chunked(path_, "x", some, {.chunk = {3, 4, 5}, .gzip = true, .rows_written = 6});
  EXPECT_TRUE(at::equal(read(0, 11), some));
  some.narrow(0, 6, 5).fill_(7);
  write_chunked(path_, "x", some, {.chunk = {3, 4, 5}, .gzip = true, .rows_written = 6, .fill = 7});
  EXPECT_TRUE(at::equal(read(0, 11), some));
}

// What the chunk is when it is uncompressed has another size than the chunk.
TEST_F(Hdf5ChunksTest, NoMoreIsUncompressedThanAChunkHolds) {
  for (const auto& options : {ChunkedOptions{.chunk = {3, 4, 5}, .gzip = true},
                              ChunkedOptions{.chunk = {3, 4, 5}, .gzip = true, .checksum = true}})
    for (const std::size_t bytes : {239u, 241u, 60'000u, 50'000'000u}) {
      write_chunked(path_, "x", values_, options);
      write_encoded(path_, "x", 3, zlib_text(std::string(bytes, '\0')));
      EXPECT_THAT(message_of<UserError>([&] { read(2, 3); }),
                  AllOf(HasSubstr(path_), HasSubstr("'x'"), HasSubstr("damaged")))
          << bytes;
    }
}

TEST_F(Hdf5ChunksTest, SaysHowItIsStored) {
  write_chunked(path_, "x", values_, {.chunk = {3, 4, 5}, .gzip = true, .shuffle = true});
  const Hdf5File file(path_);
  const Hdf5Storage& storage = file.at("x").storage;
  EXPECT_EQ(storage.chunk, (Shape{3, 4, 5}));
  EXPECT_EQ(storage.filters, (std::vector<std::string>{"shuffle", "gzip"}));
  EXPECT_TRUE(storage.decodable);
}

TEST_F(Hdf5ChunksTest, DamagedDataAreNamed) {
  write_chunked(path_, "x", values_, {.chunk = {3, 4, 5}, .gzip = true});
  damage_chunk(path_, "x", 4);
  EXPECT_NO_THROW(read(6, 3));
  EXPECT_THAT(message_of<UserError>([&] { read(2, 3); }),
              AllOf(HasSubstr(path_), HasSubstr("'x', row 3"), HasSubstr("damaged")));
}

}  // namespace
}  // namespace tutti
