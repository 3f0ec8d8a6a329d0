#include "io/tables/table_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "io/tables/csv_file.h"
#include "io/tables/parquet_file.h"
#include "runtime/error.h"
#include "tests/io/reads_parquet.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using Make = std::unique_ptr<TableWriter> (*)(WriteBytes);

std::string table_text(Make make, const std::vector<WrittenRows>& parts) {
  std::string text;
  const auto writer = make([&](std::string_view bytes) { text += bytes; });
  for (const WrittenRows& rows : parts) writer->add(rows);
  writer->finish();
  return text;
}

using Texts = std::vector<std::string>;
using Whole = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(CsvWriterTest, QuotesAsTheStandardSays) {
  const WrittenRows rows = {{"file", Texts{"a b.png", "a,b", "say \"x\"", "two\nlines", "", "=1+1", "\xff"}},
                            {"n", Whole{1, 2, 3, 4, 5, 6, -7}}};
  EXPECT_EQ(table_text(csv_writer, {rows}),
            "file,n\na b.png,1\n\"a,b\",2\n\"say \"\"x\"\"\",3\n\"two\nlines\",4\n\"\",5\n=1+1,6\n\xff,-7\n");
}

TEST(CsvWriterTest, NumbersReadBackToTheirBits) {
  std::mt19937 random(3);
  Floats numbers = {0.1F, -0.0F, 1e-45F, std::numeric_limits<float>::max(), 16777216};
  for (int i = 0; i < 1000; ++i) {
    const float number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const std::string text = table_text(csv_writer, {{{"x", numbers}}});
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  for (const float number : numbers) {
    std::getline(lines, line);
    EXPECT_EQ(std::bit_cast<uint32_t>(std::strtof(line.c_str(), nullptr)), std::bit_cast<uint32_t>(number))
        << line;
  }
}

TEST(CsvWriterTest, HasOneLineOfNames) {
  const WrittenRows rows = {{"x", Whole{1}}};
  EXPECT_EQ(table_text(csv_writer, {rows, rows}), "x\n1\n1\n");
  EXPECT_EQ(table_text(csv_writer, {{{"x", Floats{std::nanf(""), -std::nanf(""), -INFINITY}}}}),
            "x\nnan\nnan\n-inf\n");
}

TEST(JsonLinesWriterTest, HasAnObjectALine) {
  const WrittenRows rows = {{"a \"b\"", Texts{"x\ny", "\xff"}}, {"n", Floats{0.1F, std::nanf("")}}};
  EXPECT_EQ(table_text(json_lines_writer, {rows}),
            "{\"a \\\"b\\\"\": \"x\\ny\", \"n\": 0.1}\n{\"a \\\"b\\\"\": \"\xef\xbf\xbd\", \"n\": null}\n");
}

TEST(ParquetWriterTest, IsReadBack) {
  if (!reads_parquet()) GTEST_SKIP() << "there is no libtutti_parquet.so";
  const Scratch scratch;
  const std::string path = scratch.path("a.parquet");
  const auto writer = parquet_writer(path);
  constexpr int64_t kRows = 20'000, kParts = 5, kScores = 60;  // two groups
  for (int part = 0; part < kParts; ++part) {
    WrittenRows rows = {{"class", Texts()}, {"n", Whole()}};
    for (int64_t i = 0; i < kRows; ++i) {
      std::get<Texts>(rows[0].cells).push_back(i % 2 ? "cat\xff" : "dog");
      std::get<Whole>(rows[1].cells).push_back(part * kRows + i);
    }
    for (int64_t i = 0; i < kScores; ++i) rows.push_back({"score_" + std::to_string(i), Floats(kRows, 0.1F)});
    writer->add(rows);
  }
  writer->finish();
  const auto file = open_parquet(path);
  ASSERT_EQ(file->columns().size(), 2U + kScores);
  int64_t read = 0;
  file->read({{1, CellType::kNumber}, {2, CellType::kNumber}, {0, CellType::kText}},
             [&](std::span<const double> numbers, std::span<const std::string_view> texts) {
               EXPECT_EQ(numbers[0], static_cast<double>(read));
               EXPECT_EQ(static_cast<float>(numbers[1]), 0.1F);
               EXPECT_EQ(texts[0], read % 2 ? "cat\xef\xbf\xbd" : "dog");
               ++read;
             });
  EXPECT_EQ(read, kParts * kRows);
  EXPECT_THROW(parquet_writer(scratch.path("nowhere/a.parquet")), UserError);
}

}  // namespace
}  // namespace tutti
