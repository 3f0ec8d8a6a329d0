#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/tables/fitted_table.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/io/reads_parquet.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = TUTTI_SOURCE_DIR "/tests/golden/tables/";
const std::vector<int64_t> kAll = {0, 1, 2, 3, 4, 5, 6};

Setting section_of(const std::string& keys) {
  const Catalog catalog = train_data_catalog();
  const std::string recipe = "[data.train]\nbatch_size = 1\n" + keys;
  return resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
}

DatasetPtr table(const std::string& keys, const std::optional<std::string>& fitted = std::nullopt) {
  return make_dataset(section_of(keys), 0, "", kIgnoredTarget, fitted);
}

std::vector<int64_t> all_rows(const Dataset& data) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < data.size(); ++i) rows.push_back(i);
  return rows;
}

at::Tensor inputs(const DatasetPtr& data) { return data->get(all_rows(*data), {})["input"]; }
at::Tensor targets(const DatasetPtr& data) { return data->get(all_rows(*data), {})["target"]; }

class TablesTest : public testing::Test {
 protected:
  // A CSV file of this text.
  std::string csv(const std::string& text, const std::string& name = "t.csv") {
    write_text(scratch_.path(name), text);
    return "kind = 'csv'\npath = '" + scratch_.path(name) + "'\n";
  }
  std::string error_of(const std::string& text, const std::string& keys,
                       const std::optional<std::string>& fitted = std::nullopt) {
    const std::string source = csv(text);
    return message_of<UserError>([&] { table(source + keys, fitted); });
  }

  Scratch scratch_;
};

// The columns of make_tables.py as PyTorch computes them.
struct Golden {
  at::Tensor row = at::arange(7, at::kDouble);
  at::Tensor age = (20 + 3 * row).to(at::kFloat), income = (row * 1000 / 3).to(at::kFloat);
  at::Tensor member = at::remainder(row, 2).eq(0).to(at::kFloat), tiny = (row * -1e-30).to(at::kFloat);
  at::Tensor price = (row * row - 2.5).to(at::kFloat);
  at::Tensor kind = at::tensor({1, 0, 2, 1, 0, 2, 1}, at::kLong);
};

struct GoldenFile {
  const char* name;
  const char* keys;
  bool has_holes = false;
};

std::vector<GoldenFile> golden_files() {
  std::vector<GoldenFile> files = {
      {"pandas.csv", "kind = 'csv'\n"},
      {"with_index.csv", "kind = 'csv'\n"},
      {"tabs.tsv", "kind = 'csv'\n"},
      {"semicolons.csv", "kind = 'csv'\ndelimiter = ';'\n"},
      {"quoted.csv", "kind = 'csv'\n"},
      {"holes.csv", "kind = 'csv'\nmissing = 'mean'\n", true},
      {"holes_na.csv", "kind = 'csv'\nmissing = 'mean'\n", true},
  };
  if (reads_parquet())
    for (const GoldenFile& one :
         std::initializer_list<GoldenFile>{{"pandas.parquet", "kind = 'parquet'\n"},
                                           {"zstd.parquet", "kind = 'parquet'\n"},
                                           {"holes.parquet", "kind = 'parquet'\nmissing = 'mean'\n", true}})
      files.push_back(one);
  return files;
}

TEST_F(TablesTest, FilesOfOtherProgramsHaveTheirCells) {
  const Golden golden;
  at::Tensor filled = golden.income.clone();
  filled[3] = (golden.income.sum() - golden.income[3]) / 6;
  for (const auto& [name, keys, has_holes] : golden_files()) {
    SCOPED_TRACE(name);
    const std::string source = std::string(keys) + "path = '" + kGolden + name + "'\n";
    const DatasetPtr numbers = table(source + "target = 'price'\n");
    const at::Tensor income = has_holes ? filled : golden.income;
    EXPECT_TRUE(
        at::allclose(inputs(numbers), at::stack({golden.age, income, golden.member, golden.tiny}, 1), 1e-7));
    EXPECT_TRUE(at::equal(targets(numbers), golden.price));
    EXPECT_EQ(numbers->spec().describe("target"), "float32 number");

    const DatasetPtr classes = table(source + "inputs = ['age']\none_hot = ['city']\ntarget = 'kind'\n");
    EXPECT_TRUE(at::equal(targets(classes), golden.kind));
    EXPECT_EQ(classes->spec().classes, 3);
    const FittedTable fitted = FittedTable::from_json(classes->fitted());
    EXPECT_THAT(fitted.classes, ElementsAre("a", "b", "c"));
    ASSERT_EQ(fitted.texts.size(), 1);
    EXPECT_THAT(fitted.texts[0].categories,
                ElementsAre(" x ", "S\xc3\xa3o Paulo, SP", "Z\xc3\xbcrich", "the \"Big\"\nApple"));
    const at::Tensor places = at::tensor({2, 1, 3, 0, 2, 1, 3}, at::kLong);
    EXPECT_TRUE(at::equal(inputs(classes).slice(1, 1), at::one_hot(places, 4).to(at::kFloat)));
    EXPECT_TRUE(at::equal(inputs(classes).select(1, 0), golden.age));
  }
}

TEST_F(TablesTest, FloatsOf16BitsAreReadAndDatesAreNot) {
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  const DatasetPtr data =
      table("kind = 'parquet'\ntarget = 'price'\npath = '" + kGolden + "dates.parquet'\n");
  EXPECT_TRUE(at::equal(inputs(data), at::tensor({20.F, .25F, 30.F, -3.F, 40.F, 65504.F}).view({3, 2})));
}

TEST_F(TablesTest, IndexOfPandasIsNoInput) {
  const auto expect_one_input = [](const DatasetPtr& data, const std::string& left_out) {
    EXPECT_EQ(data->spec().shapes.at("input"), Shape{1});
    EXPECT_THAT(data->advice(), HasSubstr("no inputs are " + left_out + "; inputs = [...]"));
  };
  for (const std::string name : {"", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__"})
    expect_one_input(table(csv(name + ",age,price\n7,20,0.5\n8,30,1.5\n") + "target = 'price'\n"),
                     (name.empty() ? "a column without a name" : name) + " (pandas' index)");
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  const auto golden = [](const std::string& name) {
    return "kind = 'parquet'\ntarget = 'price'\npath = '" + kGolden + name + ".parquet'\n";
  };
  expect_one_input(table(golden("index")), "__index_level_0__ (pandas' index)");
  expect_one_input(table(golden("named_index")), "number (pandas' index)");
  const DatasetPtr named = table(golden("named_index") + "inputs = ['number']\n");
  EXPECT_TRUE(at::equal(inputs(named).flatten(), at::tensor({3.F, 1.F, 0.F, 6.F, 2.F, 5.F, 4.F})));
  EXPECT_EQ(named->advice(), "");
}

TEST_F(TablesTest, InputsThatCountTheRowsAreSaid) {
  const auto advice = [&](int first, int rows, const std::string& keys = "") {
    std::string text = "id,x,year,y\n";
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i + first) + "," + std::to_string(i * 7 % 5) + "," + std::to_string(2000 + i) +
              "," + std::to_string(i % 2) + "\n";
    return table(csv(text) + "target = 'y'\n" + keys)->advice();
  };
  for (const char* keys : {"", "normalize = true\n"})
    for (const int first : {0, 1})
      EXPECT_EQ(advice(first, 30, keys),
                "inputs that count the rows (0, 1, 2, ...), as an index does that was written with the data: "
                "'id'; inputs = [...] names the columns to read");
  EXPECT_EQ(advice(2, 30), "");
  EXPECT_EQ(advice(0, 10), "") << "too few to be sure";
  EXPECT_EQ(advice(0, 30, "inputs = ['id', 'x']\n"), "") << "as the recipe says";
}

TEST_F(TablesTest, NumbersInOtherNotationsAreNoNamesOfClassesInSilence) {
  for (const std::string cell :
       {"3,14", "-0,5e3", "1,007", "1,234,567", "1.100,00", "1,100.5", "1 100,5", "+1'100.5", "-1.100.000",
        "1\u00a0100\u202f000,5", "1234,5", " 3,14", "3,14\u00a0"})
    EXPECT_THAT(table(csv("x;y\n1;" + cell + "\n2;2,7\n") + "target = 'y'\ndelimiter = ';'\n")->advice(),
                HasSubstr("the target 'y' is taken for names of classes: line 2 is '" + cell +
                          "'; 2 of its first 2 cells are numbers in another notation"));
  for (const std::string cell : {"a,b", ",5", "1,2,3", "1,234,56", "1,2345,678", "1.2.2024", "1234.567,5",
                                 "1.100,0,0", "192.168.1.1", "12 34", "1.100,00 EUR", "1.234 567,0"})
    EXPECT_EQ(table(csv("x;y\n1;" + cell + "\n2;no\n") + "target = 'y'\ndelimiter = ';'\n")->advice(), "")
        << cell;
}

TEST_F(TablesTest, ColumnsThatTheDefaultLeavesOutAreNamedWithTheirCell) {
  const auto advice = [&](const std::string& cell, const std::string& keys = "") {
    const std::string text = "noise,price,y\n1,1006,0\n2,NA,1\n3," + cell + ",0\n4,1009,1\n";
    return table(csv(text) + "target = 'y'\nmissing = 'mean'\n" + keys)->advice();
  };
  for (const std::string cell : {"1,007", "inf", "12%", "unknown", "price", "1.007,5"})
    EXPECT_EQ(advice('"' + cell + '"'),
              "no inputs are price (line 4 is '" + cell +
                  "'; 2 of its first 3 cells are numbers); inputs = "
                  "[...] names the columns of numbers to read, one_hot = [...] those of texts");
  EXPECT_EQ(advice("1007"), "");
  EXPECT_EQ(advice("inf", "inputs = ['noise']\n"), "") << "as the recipe says";
  EXPECT_THAT(error_of("price,y\n1,0\ninf,1\n", "target = 'y'\n"), HasSubstr("price (line 3 is 'inf'"));

  std::string text = "t0,n,y", row;
  for (int i = 1; i < 30; ++i) text += ",t" + std::to_string(i), row += ",a";
  const std::string many =
      table(csv(text + "\nb,1,0" + row + "\n2,3,1" + row + '\n') + "target = 'y'\n")->advice();
  EXPECT_THAT(many,
              testing::StartsWith("no inputs are t0 (line 2 is 'b'; 1 of its first 2 cells are numbers), "
                                  "t1 (line 2 is 'a'), t2"));
  EXPECT_THAT(many, HasSubstr("t19 (line 2 is 'a'), and 10 more; inputs"));
}

TEST_F(TablesTest, ColumnsOfParquetThatAreLeftOutAreNamedWithTheirType) {
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  const auto golden = [](const std::string& name, const std::string& target) {
    return table("kind = 'parquet'\ntarget = '" + target + "'\npath = '" + kGolden + name + ".parquet'\n");
  };
  const DatasetPtr data = golden("types", "kind");
  EXPECT_THAT(data->advice(), HasSubstr("no inputs are cost (decimal128(5, 2)), nothing (null); inputs"));
  EXPECT_TRUE(at::equal(targets(data), at::tensor({0, 1, 0}, at::kLong))) << "views of strings";
  EXPECT_THAT(golden("dates", "price")->advice(), HasSubstr("bought (timestamp["));
}

TEST_F(TablesTest, WordsOfPandasForMissingAreMissing) {
  std::string text = "x,y\n1,0\n";
  for (const char* word : {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
                           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", ""})
    text += std::string(word) + ",1\n";
  const DatasetPtr data = table(csv(text) + "target = 'y'\nmissing = 'mean'\n");
  EXPECT_TRUE(at::equal(inputs(data), at::ones({20, 1})));
  EXPECT_EQ(data->advice(), "");
}

TEST_F(TablesTest, TargetsOfNumbersAndTextsAreNamedWithTheirCell) {
  const std::string text = "x,y\n1,5\n2,n.a.\n3,7\n";
  EXPECT_THAT(
      table(csv(text) + "target = 'y'\n")->advice(),
      HasSubstr("the target 'y' is taken for names of classes: line 3 is 'n.a.'; 2 of its first 3 cells"));
  EXPECT_EQ(table(csv(text) + "target = 'y'\ntarget_type = 'class'\n")->advice(), "");
  EXPECT_EQ(table(csv("x,y\n1,no\n2,yes\n") + "target = 'y'\n")->advice(), "");
}

TEST_F(TablesTest, AFirstRowOfNumbersIsARow) {
  const std::string numbers = "1.5,2,0\n2.5,3,1\n";
  const DatasetPtr data = table(csv(numbers) + "target = '2'\n");
  EXPECT_TRUE(at::equal(inputs(data), at::tensor({1.5F, 2.F, 2.5F, 3.F}).view({2, 2})));
  EXPECT_THAT(data->advice(), HasSubstr("t.csv: its first line has nothing but numbers, so it is a row"));
  EXPECT_EQ(table(csv(numbers) + "target = '2'\nheader = false\n")->advice(), "");
  EXPECT_EQ(table(csv(numbers) + "target = '0'\nheader = true\n")->size(), 1) << "as the recipe says";
  EXPECT_EQ(table(csv("1,1,1\n2,3,1\n2,3,0\n") + "target = '2'\n")->size(), 3) << "no two equal names";
  EXPECT_EQ(table(csv("0,1,2\n5,6,7\n") + "target = '2'\n")->size(), 1) << "pandas' names";
  EXPECT_THAT(error_of(numbers, "target = '1.5'\n"), HasSubstr("header = true takes it for names"));
  const DatasetPtr years = table(csv("city,1990,1991\n1,2,3\n") + "target = '1991'\n");
  EXPECT_THAT(years->advice(), HasSubstr("has numbers (1990) and is taken for names; header = false"));
}

TEST_F(TablesTest, ColumnsWithoutAHeaderHaveNumbers) {
  const DatasetPtr data = table("kind = 'csv'\npath = '" + kGolden +
                                "no_header.csv'\nheader = false\ninputs = ['4', '0']\ntarget = '5'\n");
  const Golden golden;
  EXPECT_TRUE(at::equal(inputs(data), at::stack({golden.tiny, golden.age}, 1)));
  EXPECT_TRUE(at::equal(targets(data), golden.price));
}

TEST_F(TablesTest, SeveralFilesAreOneBehindTheOther) {
  csv("y,x\n1.5,1\n2.5,2\n", "part-1.csv");
  csv("x,z,y\n3,0,3.5", "part-2.csv");  // columns go by their names
  const std::string source = "kind = 'csv'\npath = '" + scratch_.path("part-*.csv") + "'\n";
  const DatasetPtr data = table(source + "inputs = ['x']\ntarget = 'y'\n");
  EXPECT_TRUE(at::equal(inputs(data).flatten(), at::tensor({1.F, 2.F, 3.F})));
  EXPECT_TRUE(at::equal(targets(data), at::tensor({1.5F, 2.5F, 3.5F})));
  EXPECT_THAT(message_of<UserError>([&] { table(source + "inputs = ['z']\ntarget = 'y'\n"); }),
              HasSubstr("no column 'z'"));
}

TEST_F(TablesTest, OddFormsOfRfc4180AreRead) {
  for (const std::string text : {"x,y\n1,2\n3,4.5\n", "x,y\r\n1,2\r\n3,4.5", "x,y\r1,2\r3,4.5\r",
                                 "\n\nx,y\n\n1,2\n\n\n3,4.5\n\n", "\"x\",\"y\"\n\"1\",2\n 3 ,\"4.5\"",
                                 "\xef\xbb\xbfx,y\n+1,2e0\n3.,45E-1\n", "x,y\n1,2\n3.0000,004.5"}) {
    const DatasetPtr data = table(csv(text) + "target = 'y'\n");
    EXPECT_TRUE(at::equal(inputs(data).flatten(), at::tensor({1.F, 3.F}))) << text;
    EXPECT_TRUE(at::equal(targets(data), at::tensor({2.F, 4.5F}))) << text;
  }
  // The longest cell is no matter, and a number below float32's range is 0.
  const std::string longest = "x,note,y\n1e-400,\"" + std::string(1 << 20, '"') + "\",0.5\n";
  EXPECT_TRUE(at::equal(inputs(table(csv(longest) + "target = 'y'\n")), at::zeros({1, 1})));
}

TEST_F(TablesTest, ErrorsNameFileLineColumnAndValue) {
  const std::string y = "target = 'y'\n";
  const auto expect = [&](const std::string& text, const std::string& keys, const std::string& message) {
    const std::string error = error_of(text, keys);
    EXPECT_THAT(error, HasSubstr(message)) << text.substr(0, 100);
    const bool blames_key =
        keys.find("inputs") != std::string::npos || keys.find("delimiter") != std::string::npos;
    if (!blames_key) EXPECT_THAT(error, HasSubstr("t.csv"));
    EXPECT_THAT(error, testing::StartsWith("r.toml:"));
  };
  std::string late = "x,note,y\n";
  for (int i = 0; i < 1100; ++i) late += "1,\"a\nb\",2\n";
  expect(late + "abc,d,1\n", y, "line 2202, column 'x': 'abc' is not a number");
  expect("x,y\n1,2\ninf,3\n", "inputs = ['x']\n" + y, "line 3, column 'x': 'inf' is not a number");
  expect("x,y\n1e39,3\n", y, "line 2, column 'x': 1e+39 does not fit into float32");
  expect("x,y\n1e999,3\n", "inputs = ['x']\n" + y, "line 2, column 'x': '1e999' is not a number");
  expect("x,y\n1,2\n,3\n", y, "line 3, column 'x': a missing value; missing = \"mean\"");
  expect("x,y\n1,2\n2,nan\n", y, "line 3, column 'y': a missing value; each row needs its target");
  expect("x,y\n1,2\n3\n", y, "line 3, a row of 1 cells; there are 2 columns");
  expect("x,y\n1,2\n3,4,5\n", y, "line 3, more cells than the 2 columns");
  expect("x,y\n1,2\n3,\"4\n\n", y, "line 3, a quoted cell that does not end");
  expect("x,y\n1,2\n3,\"4\"5\n", y, "line 3, text behind the closing quote of a cell");
  expect(std::string("x,y\n1,2\n3,\0", 11), y, "line 3, a NUL byte");
  expect("x,x\n1,2\n", y, "line 1, two columns are named 'x'");
  expect(
      "\xff\xfe"
      "x",
      y, "UTF-16; save it as UTF-8");
  expect("x\xff,y\n1,2\n", y, "line 1, the name of column 0 is not UTF-8");
  expect("", y, "an empty table");
  expect("x,y\n", y, "has no rows");
  expect("x,price\n1,2\n", "target = 'prize'\n",
         "has no column 'prize'; did you mean 'price'? It has x, price");
  expect("x,y\n1,2\n", "target = 'y'\ninputs = ['x', 'y']\n", "'y' is named twice, or has another use");
  expect("t,y\na,2\n", y, "no columns of numbers but the targets; one_hot takes texts");
  expect("x,y\n1,a\n2,\n", y, "line 3, column 'y': a missing value");
  expect("x,y\n1,\"" + std::string(300, 'a') + "\"\n", y,
         "is no name: expected a line of UTF-8, of at most 256 bytes");
  expect("x,y\n1,\xff\n", y, "line 2, column 'y': not UTF-8 (Latin-1? iconv -f latin1");
  expect("a\ty\n1\t2\n", y, "It has a\\x09y; there is one column; delimiter = \"\\t\" makes several");
  expect("x,y\n1,b\n", y + "classes = ['a']\n", "line 2, column 'y': 'b' is none of the 1 classes");
  expect("x,y\n1,2\n", y + "delimiter = 'ab'\n", "data.train.delimiter = \"ab\": expected one character");
  EXPECT_THAT(error_of("x,y\n1,2\n", ""), HasSubstr("expected target"));
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  EXPECT_THAT(message_of<UserError>(
                  [&] { table("kind = 'parquet'\ntarget = 'y'\npath = '" + kGolden + "pandas.csv'"); }),
              HasSubstr("pandas.csv\": Parquet magic bytes not found"));
  EXPECT_THAT(message_of<UserError>([&] {
                table("kind = 'parquet'\ntarget = 'price'\ninputs = ['city']\npath = '" + kGolden +
                      "pandas.parquet'");
              }),
              HasSubstr("column 'city': texts are not numbers"));
}

TEST_F(TablesTest, TargetsAreClassesOrNumbers) {
  const auto of = [&](const std::string& column, const std::string& keys) {
    std::string text = "x,y\n";
    for (std::size_t i = 0; i < column.size(); i += 2) text += "0," + column.substr(i, 2) + '\n';
    return table(csv(text) + "inputs = ['x']\n" + keys);
  };
  const auto is = [&](const DatasetPtr& data, const at::Tensor& wanted, int64_t classes) {
    EXPECT_TRUE(targets(data).dtype() == wanted.dtype() && at::equal(targets(data), wanted)) << targets(data);
    EXPECT_EQ(data->spec().classes, classes);
  };
  is(of("00020100", "target = 'y'\n"), at::tensor({0, 2, 1, 0}, at::kLong), 3);
  is(of("000000", "target = 'y'\n"), at::tensor({0.F, 0.F, 0.F}), 0);         // a single value
  is(of("00020400", "target = 'y'\n"), at::tensor({0.F, 2.F, 4.F, 0.F}), 0);  // a gap
  is(of("10 9-110", "target = 'y'\ntarget_type = 'class'\n"), at::tensor({2, 1, 0, 2}, at::kLong), 3);
  is(of("00020100", "target = 'y'\ntarget_type = 'number'\n"), at::tensor({0.F, 2.F, 1.F, 0.F}), 0);
  is(of("00020100", "target = ['y']\n"), at::tensor({0.F, 2.F, 1.F, 0.F}).view({4, 1}), 0);
  is(of("b1a1b1", "target = 'y'\nclasses = ['c1', 'b1', 'a1']\n"), at::tensor({1, 2, 1}, at::kLong), 3);
  is(table(csv("x,y,z\n1,0,1\n2,1,0\n") + "target = ['z', 'y']\n"),
     at::tensor({1.F, 0.F, 0.F, 1.F}).view({2, 2}), 0);
}

TEST_F(TablesTest, ColumnsOfTextsAreInputsSideBySide) {
  const DatasetPtr data =
      table(csv("a,x,b,y\nu,1,q,0.5\nv,2,p,1.5\nu,3,r,2.5\n") + "target = 'y'\none_hot = ['a', 'b']\n");
  const std::vector<float> wanted = {1, 1, 0, 0, 1, 0, 2, 0, 1, 1, 0, 0, 3, 1, 0, 0, 0, 1};
  EXPECT_TRUE(at::equal(inputs(data).flatten(), at::tensor(wanted)));
}

TEST_F(TablesTest, NamesMayBeQuoted) {
  const auto classes = [&](const std::string& text) {
    return FittedTable::from_json(table(csv(text) + "target = 'y'\n")->fitted()).classes;
  };
  EXPECT_THAT(classes("x,y\n1,\"NA\"\n2,b\n"), ElementsAre("NA", "b")) << "quoted, it is not missing";
  EXPECT_THAT(error_of("x,y\n1,\"a\nb\"\n2,c\n", "target = 'y'\n"), HasSubstr("is no name"));
}

TEST_F(TablesTest, NormalizedInputsAreThoseOfStandardScaler) {
  const std::string text = "x,constant,big,y\n1,0.1,1e6,0\n2,0.1,1000001,0\n4,0.1,,0\n";
  const DatasetPtr data = table(csv(text) + "target = ['y']\nnormalize = true\nmissing = 'mean'\n");
  const at::Tensor x = at::tensor({1., 2., 4.}, at::kDouble), big = at::tensor({0., 1., .5}, at::kDouble);
  const auto scaled = [](const at::Tensor& values) {
    return ((values - values.mean()) / values.std(/*unbiased=*/false)).to(at::kFloat);
  };
  EXPECT_TRUE(at::allclose(inputs(data), at::stack({scaled(x), at::zeros({3}), scaled(big)}, 1), 1e-6));
  const FittedTable fitted = FittedTable::from_json(data->fitted());
  EXPECT_DOUBLE_EQ(fitted.mean[0], 7. / 3);
  EXPECT_EQ(fitted.std[1], 1);
  EXPECT_EQ(data->memory_bytes(), 3 * 4 * 4);
}

// Unix times, 7 s apart, of which float32 has one number for 18.
TEST_F(TablesTest, NumbersAreFloat64UntilTheyAreNormalized) {
  const at::Tensor times = 1.7e9 + 7 * at::arange(200, at::kDouble);
  const auto csv_of = [&](const std::string& name) {
    std::string text = "when,y\n";
    for (int i = 0; i < 200; ++i) text += std::to_string(1'700'000'000 + 7 * i) + ",0.5\n";
    return csv(text, name);
  };
  const at::Tensor wanted = ((times - times.mean()) / times.std(/*unbiased=*/false)).to(at::kFloat);
  const auto expect_normalized = [&](const DatasetPtr& data) {
    EXPECT_TRUE(at::allclose(inputs(data).flatten(), wanted, 0, 1e-6));
    EXPECT_EQ(data->advice(), "");
  };
  const DatasetPtr trained = table(csv_of("t.csv") + "target = 'y'\nnormalize = true\n");
  expect_normalized(trained);
  expect_normalized(table(csv_of("eval.csv"), trained->fitted()));
  expect_normalized(table(csv_of("t.csv") + "target = 'y'\nnormalize = true\nmissing = 'mean'\n"));
  EXPECT_EQ(trained->memory_bytes(), 200 * 2 * 4);
}

TEST_F(TablesTest, TargetsAreNormalizedByTheTrainingTable) {
  const std::string keys = "target = ['y', 'z']\nnormalize_target = true\n";
  const DatasetPtr trained = table(csv("x,y,z\n1,1700000000,5\n2,1700000004,5\n", "t.csv") + keys);
  EXPECT_TRUE(at::equal(trained->get(std::vector<int64_t>{0, 1}, {})["target"],
                        at::tensor({-1.0F, 0.0F, 1.0F, 0.0F}).view({2, 2})));
  EXPECT_EQ(trained->advice(), "");
  const DatasetPtr evaluated = table(csv("x,y,z\n1,1700000006,7\n", "e.csv"), trained->fitted());
  EXPECT_TRUE(at::equal(evaluated->get(std::vector<int64_t>{0}, {})["target"], at::full({1, 2}, 2.0F)));
  const FittedTable facts = FittedTable::from_json(trained->fitted());
  EXPECT_THAT(facts.target_mean, ElementsAre(1700000002, 5));
  EXPECT_THAT(facts.target_std, ElementsAre(2, 1));
  EXPECT_THAT(message_of<UserError>(
                  [&] { table(csv("x,y\n1,a\n2,b\n") + "target = 'y'\nnormalize_target = true\n"); }),
              HasSubstr("normalize_target = true: expected targets that are numbers; here they are classes"));
}

TEST_F(TablesTest, ColumnsThatFloat32RoundsAreNamed) {
  const std::string text = "when,x,y\n1700000000,0.1,0.5\n1700000090,0.7,0.2\n1700001000,0.3,-1e9\n";
  EXPECT_EQ(
      table(csv(text) + "target = 'y'\n")->advice(),
      "float32 keeps the numbers of column 'when' within 38, of a range of 1000; normalize = true subtracts "
      "the mean before");
  EXPECT_EQ(table(csv(text) + "target = 'y'\nnormalize = true\n")->advice(), "");
  EXPECT_THAT(table(csv(text) + "inputs = ['x']\ntarget = ['y', 'when']\n")->advice(),
              HasSubstr("of column 'when' within 38, of a range of 1000; normalize_target = true subtracts "
                        "the mean before"));
}

TEST_F(TablesTest, LargeTablesAreNormalizedInParts) {
  std::string text = "a,b,c,y\n";
  const int rows = 400'000;  // more than one block of numbers
  for (int i = 0; i < rows; ++i) text += std::to_string(i) + ",1," + std::to_string(i % 2) + ",0.5\n";
  const DatasetPtr data = table(csv(text) + "target = 'y'\nnormalize = true\n");
  const at::Tensor found = inputs(data), row = at::arange(rows, at::kDouble);
  const at::Tensor wanted = ((row - row.mean()) / row.std(/*unbiased=*/false)).to(at::kFloat);
  EXPECT_TRUE(at::allclose(found.select(1, 0), wanted, 0, 1e-6));
  EXPECT_TRUE(at::equal(found.select(1, 1), at::zeros({rows})));
  EXPECT_TRUE(at::equal(found.select(1, 2), at::remainder(row, 2).mul(2).sub(1).to(at::kFloat)));
}

TEST_F(TablesTest, EvaluationsHaveTheTrainingsNumbersCategoriesAndClasses) {
  const std::string keys = "target = 'y'\none_hot = ['c']\nnormalize = true\n";
  const DatasetPtr trained = table(csv("x,c,y\n1,red,no\n3,blue,yes\n") + keys);
  const std::string fitted = trained->fitted();
  const DatasetPtr eval = table(csv("y,c,x\nyes,blue,5\nyes,blue,2\n"), fitted);
  EXPECT_TRUE(at::equal(inputs(eval), at::tensor({3.F, 1.F, 0.F, 0.F, 1.F, 0.F}).view({2, 3})));
  EXPECT_TRUE(at::equal(targets(eval), at::tensor({1, 1}, at::kLong)));
  EXPECT_EQ(eval->spec().classes, 2);
  EXPECT_EQ(eval->fitted(), fitted);
  const DatasetPtr unlabelled = table(csv("c,x\nred,3\n"), fitted);
  EXPECT_FALSE(unlabelled->spec().shapes.contains("target"));
  EXPECT_TRUE(at::equal(inputs(unlabelled), at::tensor({1.F, 0.F, 1.F}).view({1, 3})));
  EXPECT_THAT(error_of("x,c,y\n1,green,no\n", "", fitted),
              HasSubstr("line 2, column 'c': 'green' is none of the 2 values in training"));
  EXPECT_THAT(error_of("x,c,y\n1,red,may\n", "", fitted),
              HasSubstr("'may' is none of the 2 values in training"));
  EXPECT_THAT(error_of("x,y\n1,no\n", "", fitted), HasSubstr("it has no column 'c'"));
  EXPECT_THAT(error_of("x,c,y\n,red,no\n", "", fitted), HasSubstr("a missing value"));
  EXPECT_THAT(error_of("x,c,y\n1,red,no\n", "inputs = ['c']\n", fitted),
              HasSubstr("data.train.inputs = [\"c\"]: [data.train] has another"));
  EXPECT_THAT(error_of("x,c,y\n1,red,no\n", "", ""), HasSubstr("expected [data.train] to be a table"));
  const std::string numbered = table(csv("x,y\n1,0\n2,1\n") + "target = 'y'\n")->fitted();
  EXPECT_EQ(targets(table(csv("x,y\n1,1\n"), numbered)).item<int64_t>(), 1);
  EXPECT_THAT(error_of("x,y\n1,1e300\n", "", numbered), HasSubstr("1e+300 is not a class"));
  EXPECT_THAT(error_of("x,y\n1,0.5\n", "", numbered),
              HasSubstr("0.5 is not a class: those of the training are 0 to 1"));
  EXPECT_THAT(error_of("x,y\n1,-1\n", "", numbered), HasSubstr("-1 is not a class"));
  EXPECT_EQ(targets(table(csv("x,y\n1,-100\n"), numbered)).item<int64_t>(), kIgnoredTarget);
  EXPECT_THAT(error_of("x,y\n1,0\n", "target = 'x'\n", numbered), HasSubstr("[data.train] has another"));
}

TEST_F(TablesTest, TheDigestKnowsTheStatistics) {
  const auto digest = [&](int changed, const std::string& keys) {
    std::string text = "x,y\n";
    for (int i = 0; i < 300; ++i) text += std::to_string(i == changed ? 7 : 8) + ",0.5\n";
    return table(csv(text) + "target = 'y'\n" + keys)->digest();
  };
  EXPECT_EQ(digest(-1, ""), digest(-1, ""));
  EXPECT_EQ(digest(-1, ""), digest(101, "")) << "row 101 is not in the digest: this proves nothing";
  EXPECT_NE(digest(101, "normalize = true\n"), digest(-1, "normalize = true\n"));
  const auto named = [&](const std::string& name) {
    return table(csv("x,y\n1,a\n2," + name + "\n") + "target = 'y'\n")->digest();
  };
  EXPECT_NE(named("yes"), named("no"));  // of the same number
}

}  // namespace
}  // namespace tutti
