#include "data/arrays/hdf5_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/error.h"
#include "tests/io/hdf5/chunked_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr int64_t kRows = 40;
constexpr size_t kChunkBytes = size_t{4} * 30'000;  // so large that chunks are not kept together

class Hdf5RowsTest : public testing::Test {
 protected:
  Hdf5RowsTest() { write_chunked(path_, "x", values_, {.chunk = {4, 30'000}, .gzip = true}); }

  at::Tensor gathered(const ArrayRows& source, const std::vector<int64_t>& rows) const {
    at::Tensor read = at::empty({std::ssize(rows), 30'000}, at::kByte);
    source.gather(rows, static_cast<std::byte*>(read.mutable_data_ptr()));
    return read;
  }
  bool reads_well(const ArrayRows& source, const std::vector<int64_t>& rows) const {
    return at::equal(gathered(source, rows), values_.index_select(0, at::tensor(rows)));
  }
  void damage(int64_t row) { damage_chunk(path_, "x", row); }
  std::shared_ptr<const Hdf5File> file() const { return std::make_shared<const Hdf5File>(path_); }

  Scratch scratch_;
  std::string path_ = scratch_.path("x.h5");
  at::Tensor values_ = at::randint(256, {kRows, 30'000}).to(at::kByte);
};

TEST_F(Hdf5RowsTest, RowsComeInTheOrderAskedFor) {
  const auto from = file();
  const Hdf5Entry& entry = from->at("x");
  std::vector<ArrayRowsPtr> sources;
  sources.push_back(kept_rows(from, entry));
  for (const size_t bytes : {0, 1 << 30}) sources.push_back(recent_rows(from, entry, bytes));
  for (const auto& source : sources) {
    EXPECT_TRUE(reads_well(*source, {39, 0, 5, 4, 4, 39}));
    EXPECT_TRUE(reads_well(*source, {7, 5, 6, 0}));
    EXPECT_EQ(gathered(*source, {}).numel(), 0);
  }
}

TEST_F(Hdf5RowsTest, KeptChunksAreReadOnce) {
  const auto from = file();
  const auto source = kept_rows(from, from->at("x"));
  EXPECT_TRUE(reads_well(*source, {9}));
  damage(9);
  EXPECT_TRUE(reads_well(*source, {8, 11})) << "of the same chunk";
  damage(12);
  EXPECT_THROW(gathered(*source, {12}), UserError);
  EXPECT_THROW(gathered(*source, {13}), UserError) << "again";
}

TEST_F(Hdf5RowsTest, TheLastChunksAreKeptWithinTheLimit) {
  const auto from = file();
  const auto source = recent_rows(from, from->at("x"), 2 * kChunkBytes);
  EXPECT_TRUE(reads_well(*source, {0}));
  EXPECT_TRUE(reads_well(*source, {4}));
  EXPECT_TRUE(reads_well(*source, {0, 8})) << "4 is now the one that was not used for longest";
  for (const int64_t row : {0, 4, 8}) damage(row);
  EXPECT_TRUE(reads_well(*source, {1, 9}));
  EXPECT_THROW(gathered(*source, {4}), UserError);
}

TEST_F(Hdf5RowsTest, ManyThreadsReadTheSameRows) {
  const auto from = file();
  const Hdf5Entry& entry = from->at("x");
  std::vector<ArrayRowsPtr> sources;
  sources.push_back(kept_rows(from, entry));
  sources.push_back(recent_rows(from, entry, 3 * kChunkBytes));
  for (const auto& source : sources) {
    std::vector<int> good(4, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < good.size(); ++t)
      threads.emplace_back([&, t] {
        std::vector<int64_t> rows(kRows);
        for (int64_t i = 0; i < kRows; ++i)
          rows[static_cast<size_t>(i)] = (7 * i + static_cast<int64_t>(t)) % kRows;
        good[t] = reads_well(*source, rows);
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(std::accumulate(good.begin(), good.end(), 0), 4);
  }
}

}  // namespace
}  // namespace tutti
