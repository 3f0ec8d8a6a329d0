#include "io/json_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "io/tables/json_lines_file.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Each with its place.
std::vector<std::string> rows_of(const std::string& text) {
  JsonRows rows("a.json", text);
  std::vector<std::string> all;
  while (const auto row = rows.next()) all.push_back(rows.place() + ' ' + std::string(*row));
  return all;
}

std::string error_of(const std::string& text) {
  return message_of<UserError>([&] { rows_of(text); });
}

TEST(JsonRowsTest, LinesOfBlanksAreNoRows) {
  EXPECT_THAT(rows_of("{1}\n \t\r\n{2}\n\n{3}"), ElementsAre("line 1 {1}", "line 3 {2}", "line 5 {3}"));
}

TEST(JsonRowsTest, AnArraysElementsAreRowsWhereverItsLinesEnd) {
  EXPECT_THAT(rows_of("\xef\xbb\xbf \n[\n {\"a\":\n [1, {}]}\n,{\"b\": \"],[\\\"{\"} ]\n"),
              ElementsAre("object 1 {\"a\":\n [1, {}]}", "object 2 {\"b\": \"],[\\\"{\"}"));
  EXPECT_THAT(rows_of("[1,2]"), ElementsAre("object 1 1", "object 2 2"));
  EXPECT_THAT(rows_of(" [ ] "), ElementsAre());
}

TEST(JsonRowsTest, ADamagedArrayIsRefusedWhereItEnds) {
  EXPECT_THAT(error_of("[{}, {\"a\": [1"),
              HasSubstr("a.json: the array does not end: the file is cut off in or behind object 2"));
  EXPECT_THAT(error_of("[{}"), HasSubstr("cut off in or behind object 1"));
  EXPECT_THAT(error_of("["), HasSubstr("object 1 is missing"));
  EXPECT_THAT(error_of("[{} {}]"), HasSubstr("no JSON behind object 1"));
  EXPECT_THAT(error_of("[{},]"), HasSubstr("object 2 is missing"));
  EXPECT_THAT(error_of("[{}] {}"), HasSubstr("something stands behind the array"));
}

TEST(JsonRowsTest, ATableMayBeAnArray) {
  Scratch scratch;
  write_text(scratch.path("t.json"), "[{\"a\": 1, \"b\": \"x\"},\n{\"a\": 2, \"b\": \"y\"}]");
  JsonLinesFile table(scratch.path("t.json"));
  std::vector<double> numbers;
  table.read({{0, CellType::kNumber}}, [&](auto row, auto) { numbers.push_back(row[0]); });
  EXPECT_THAT(numbers, ElementsAre(1, 2));
  EXPECT_GE(table.most_rows(), 2);
  write_text(scratch.path("t.json"), "[{\"a\": 1}, 2]");
  EXPECT_THAT(message_of<UserError>([&] { JsonLinesFile(scratch.path("t.json")); }),
              HasSubstr("object 2: expected a JSON object"));
}

}  // namespace
}  // namespace tutti
