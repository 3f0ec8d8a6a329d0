#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/tables/fitted_table.h"
#include "data/tokenizers/tokenizer.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/io/reads_parquet.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGoldenTexts = TUTTI_SOURCE_DIR "/tests/golden/";
const std::string kBert = kGoldenTexts + "tokenizers/bert.json";

DatasetPtr texts(const std::string& keys, const std::optional<std::string>& fitted = std::nullopt) {
  const Catalog catalog = train_data_catalog();
  const std::string recipe = "[data.train]\nbatch_size = 1\nkind = 'text_table'\n" + keys;
  const Setting section =
      resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
  return make_dataset(section, 0, "", kIgnoredTarget, fitted);
}

std::string of_file(const std::string& path, const std::string& tokenizer = kBert) {
  return "path = '" + path + "'\ntokenizer = '" + tokenizer + "'\n";
}

Batch batch_of(const DatasetPtr& data) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < data->size(); ++i) rows.push_back(i);
  return data->get(rows, {});
}

std::vector<std::vector<int64_t>> rows_of(const at::Tensor& numbers) {
  EXPECT_EQ(numbers.scalar_type(), at::kLong);
  std::vector<std::vector<int64_t>> rows;
  for (const at::Tensor& row : numbers.unbind()) {
    const at::Tensor whole = row.contiguous();
    const int64_t* first = whole.const_data_ptr<int64_t>();
    rows.emplace_back(first, first + whole.numel());
  }
  return rows;
}

void expect_arrays(const Batch& batch, const nlohmann::json& answers) {
  std::size_t found = 0;
  for (const auto& [name, numbers] : answers.items()) {
    ++found;
    EXPECT_EQ(rows_of(batch[name]), numbers.get<std::vector<std::vector<int64_t>>>()) << name;
  }
  EXPECT_EQ(batch.leaves().size(), found);
}

class TextTables : public testing::TestWithParam<std::string> {};

TEST_P(TextTables, HaveTheSamplesOfTransformers) {
  const std::string ending = GetParam();
  if (ending == "parquet" && !reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  std::ifstream in(kGoldenTexts + "text_tables/answers.json");
  const auto answers = nlohmann::json::parse(in);
  for (const auto& [name, of_lengths] : answers.items()) {
    const std::string tokenizer = name == "bert" ? kBert : kGoldenTexts + "text_tables/" + name + ".json";
    for (const auto& answer : of_lengths) {
      const auto length = answer.at("sequence_length").get<int64_t>();
      SCOPED_TRACE(name + " at " + std::to_string(length));
      const std::string keys = of_file(kGoldenTexts + "text_tables/texts." + ending, tokenizer) +
                               "sequence_length = " + std::to_string(length) + '\n';
      expect_arrays(batch_of(texts(keys)), answer.at("single"));
      expect_arrays(batch_of(texts(keys + "text_pair = 'other'\n")), answer.at("pair"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, TextTables, testing::Values("jsonl", "csv", "parquet"),
                         [](const auto& info) { return info.param; });

class TextTableTest : public testing::Test {
 protected:
  // A file of this text, by its ending, with a tokenizer.
  std::string file(const std::string& text, const std::string& name = "t.jsonl") {
    write_text(scratch_.path(name), text);
    return of_file(scratch_.path(name)) + "sequence_length = 8\n";
  }
  std::string error_of(const std::string& text, const std::string& keys = "",
                       const std::string& name = "t.jsonl") {
    const std::string source = file(text, name);
    return message_of<UserError>([&] { texts(source + keys); });
  }

  Scratch scratch_;
};

const std::string kMoods = R"({"text": "be glad", "mood": "glad", "stars": 2.5, "fun": true}

{"text": "be sad", "mood": "sad", "stars": 1, "fun": false, "more": [1]}
{"text": "", "mood": "glad", "stars": 4, "fun": true}
)";

TEST_F(TextTableTest, TargetsAreClassesOrNumbers) {
  const auto moods = texts(file(kMoods) + "target = 'mood'\n");
  EXPECT_TRUE(batch_of(moods)["target"].equal(at::tensor({0, 1, 0}, at::kLong)));
  EXPECT_EQ(moods->spec().classes, 2);
  EXPECT_THAT(FittedTable::from_json(moods->fitted()).classes, ElementsAre("glad", "sad"));
  EXPECT_TRUE(
      batch_of(texts(file(kMoods) + "target = 'stars'\n"))["target"].equal(at::tensor({2.5F, 1.0F, 4.0F})));
  EXPECT_TRUE(
      batch_of(texts(file(kMoods) + "target = 'fun'\n"))["target"].equal(at::tensor({1, 0, 1}, at::kLong)));
  EXPECT_EQ(batch_of(texts(file(kMoods) + "target = ['stars', 'fun']\n"))["target"].sizes(), (Shape{3, 2}));
  const auto none = texts(file(kMoods));
  EXPECT_EQ(none->fitted(), "");
  EXPECT_EQ(none->spec().classes, none->tokenizer()->vocab_size());
}

TEST_F(TextTableTest, EvaluationsHaveTheTrainingsClasses) {
  const std::string fitted = texts(file(kMoods) + "target = 'mood'\n")->fitted();
  const std::string sad = R"({"text": "be", "mood": "sad"})", odd = R"({"text": "be", "mood": "odd"})";
  const auto eval = texts(file(sad, "e.jsonl"), fitted);
  EXPECT_TRUE(batch_of(eval)["target"].equal(at::tensor({1}, at::kLong)));
  EXPECT_EQ(eval->spec().classes, 2);
  const auto predicted = texts(file(R"({"text": "be"})", "p.jsonl"), fitted);
  EXPECT_FALSE(batch_of(predicted).find("target"));
  EXPECT_EQ(predicted->spec().classes, 2);
  EXPECT_EQ(FittedTable::from_json(fitted).spec().shapes.count("input"), 0U);
  EXPECT_THAT(message_of<UserError>([&] { texts(file(odd, "e.jsonl"), fitted); }),
              HasSubstr("line 1, column 'mood': 'odd' is none of the 2 values in training"));
  EXPECT_THAT(message_of<UserError>([&] { texts(file(sad, "e.jsonl") + "target = 'text'\n", fitted); }),
              HasSubstr("[data.train] has another"));
}

TEST_F(TextTableTest, EvaluationsOfOtherTrainingsNeedNumberedClasses) {
  const FittedTable numbers{
      .numbers = {"stars"}, .target = {"mood"}, .target_is = FittedTable::Target::kName, .classes = {"sad"}};
  const std::string sad = file(R"({"text": "be", "mood": "sad"})");
  EXPECT_THAT(message_of<UserError>([&] { texts(sad, numbers.to_json()); }),
              HasSubstr("kind = \"text_table\": expected a table of numbers, as [data.train] is"));
  EXPECT_THAT(message_of<UserError>([&] { texts(sad + "target = 'mood'\n", ""); }),
              HasSubstr("target = \"mood\": [data.train] has no names of classes"));
  const auto listed = texts(sad + "target = 'mood'\nclasses = ['glad', 'sad']\n", "");
  EXPECT_TRUE(batch_of(listed)["target"].equal(at::tensor({1}, at::kLong)));
  EXPECT_TRUE(batch_of(texts(file(kMoods) + "target = 'fun'\n", ""))["target"].equal(
      at::tensor({1, 0, 1}, at::kLong)));
}

TEST_F(TextTableTest, EvaluationsHaveTheOrderOfTheTrainingsClasses) {
  const std::string source = file(kMoods) + "target = 'mood'\n", listed = "classes = ['sad', 'glad']\n";
  const auto sorted = texts(source);
  EXPECT_THAT(message_of<UserError>([&] { texts(source + listed, sorted->fitted()); }),
              HasSubstr("[data.train] has another"));
  const std::string renamed =
      file(R"({"text": "be", "mood": "a"})", "a.jsonl") + "target = 'mood'\nclasses = ['a', ";
  EXPECT_NE(texts(renamed + "'b']\n")->digest(), texts(renamed + "'c']\n")->digest());
}

TEST_F(TextTableTest, AreFilledWithThePaddingOfTheConfig) {
  std::filesystem::copy(kBert, scratch_.path("tokenizer.json"));
  write_text(scratch_.path("tokenizer_config.json"), R"({"pad_token": "[MASK]"})");
  write_text(scratch_.path("t.csv"), "text\nlord\n");
  const auto data =
      texts(of_file(scratch_.path("t.csv"), scratch_.path("tokenizer.json")) + "sequence_length = 5\n");
  const int64_t mask = *data->tokenizer()->id_of("[MASK]");
  EXPECT_TRUE(batch_of(data)["input_ids"].slice(1, 3).eq(mask).all().item<bool>());
}

TEST_F(TextTableTest, OfManyBytesAreEncodedInParts) {
  const std::string large = R"({"text": ")" + std::string(std::size_t{5} << 20, 'a') + "\"}\n";
  const std::string small = R"({"text": "be glad"})";
  const at::Tensor tokens = batch_of(texts(file(large + large + small)))["input_ids"];
  const at::Tensor alone = batch_of(texts(file(small)))["input_ids"];
  EXPECT_TRUE(tokens.slice(0, 2).equal(alone));
  EXPECT_TRUE(tokens[0].equal(tokens[1]));
  EXPECT_FALSE(tokens[0].equal(alone[0]));
}

TEST_F(TextTableTest, ATextThatTheTokenizerDoesNotKnowIsNamedByItsRow) {
  std::ifstream in(kBert);
  auto json = nlohmann::json::parse(in);
  json["model"]["unk_token"] = "[NONE]";
  write_text(scratch_.path("tokenizer.json"), json.dump());
  write_text(scratch_.path("t-1.csv"), "text\nlord\n");
  write_text(scratch_.path("t-2.csv"), "text\nlord\n\u0e01\n");
  EXPECT_THAT(message_of<UserError>(
                  [&] { texts(of_file(scratch_.path("t-*.csv"), scratch_.path("tokenizer.json"))); }),
              HasSubstr("t-2.csv: row 2: "));
}

TEST_F(TextTableTest, ColumnsMayComeLaterThanTheFirstLine) {
  const std::string source = file("{\"q\": null}\n{\"q\": \"a\", \"text\": \"b\"}\n");
  EXPECT_THAT(message_of<UserError>([&] { texts(source); }),
              HasSubstr("line 1, column 'text': a missing text"));
}

TEST_F(TextTableTest, PositivesAndNegativesAreArraysOfTheirOwn) {
  const std::string line = R"({"q": "who", "a": "god", "wrong": "a man of the earth"})";
  const Batch batch = batch_of(texts(file(line) + "text = 'q'\npositive = 'a'\nnegative = 'wrong'\n"));
  EXPECT_EQ(batch.leaves().size(), 6U);
  for (const auto& [tokens, mask, column] : {std::array{"input_ids", "attention_mask", "q"},
                                             {"positive_ids", "positive_attention_mask", "a"},
                                             {"negative_ids", "negative_attention_mask", "wrong"}}) {
    const Batch alone = batch_of(texts(file(line) + "text = '" + column + "'\narray = 'input'\n"));
    EXPECT_TRUE(batch[tokens].equal(alone["input"])) << tokens;
    EXPECT_TRUE(batch[mask].equal(alone["attention_mask"])) << mask;
  }
}

TEST_F(TextTableTest, SaysWhatIsCutAndWhatIsFilled) {
  std::string words;
  for (int i = 0; i < 30; ++i) words += " lord";
  const std::string longer = R"({"text": ")" + words + "\"}\n";
  EXPECT_EQ(texts(file(longer + R"({"text": "lord"})"))->advice(),
            "1 of 2 texts are cut at sequence_length = 8; the longest has 32 tokens");
  EXPECT_EQ(texts(file(R"({"text": "lord"})"))->advice(),
            "the longest text has 3 of sequence_length = 8 tokens; the rest is filled, and computed");
}

TEST_F(TextTableTest, TargetsOfNumbersAndTextsAreNamedWithTheirCell) {
  const std::string lines = R"({"text": "a", "y": 1}
{"text": "b", "y": "1,007"})";
  EXPECT_THAT(
      texts(file(lines) + "target = 'y'\n")->advice(),
      HasSubstr("the target 'y' is taken for names of classes: line 2 is '1,007'; 1 of its first 2 cells"));
}

TEST_F(TextTableTest, ErrorsNameFileLineColumnAndValue) {
  EXPECT_THAT(error_of("{\"text\": \"a\"}\n{\"text\": \"b\"\n"), HasSubstr("line 2: not JSON"));
  EXPECT_THAT(error_of("{\"text\": \"a\"}\n[1]\n"), HasSubstr("line 2: expected a JSON object in each line"));
  EXPECT_THAT(error_of("{\"text\": \"a\"}\n\n{\"text\": null}"),
              HasSubstr("line 3, column 'text': a missing text"));
  EXPECT_THAT(error_of("{\"text\": [1]}"), HasSubstr("line 1, column 'text': a list or an object"));
  EXPECT_THAT(error_of("text,mood\na,x\nNA,y\n", "", "t.csv"), HasSubstr("line 3, column 'text'"));
  EXPECT_THAT(error_of("text\n\xff\xfe\n", "", "t.csv"), HasSubstr("line 2, column 'text': not UTF-8"));
  EXPECT_THAT(error_of("{\"text\": \"a\", \"n\": \"x\"}", "target = 'n'\ntarget_type = 'number'\n"),
              HasSubstr("line 1, column 'n': '\"x\"' is not a number"));
  EXPECT_THAT(error_of(""), HasSubstr("an empty table"));
  EXPECT_THAT(error_of(kMoods, "text = 'txt'\n"), HasSubstr("did you mean 'text'?"));
  EXPECT_THAT(error_of(kMoods, "text = ''\ntarget = 'mood'\n"), HasSubstr("has no column ''"));
  EXPECT_THAT(error_of(kMoods, "text_pair = 'text'\n"), HasSubstr("'text' is named twice"));
  EXPECT_THAT(error_of(kMoods, "target = 'text'\n"), HasSubstr("'text' is named twice"));
  EXPECT_THAT(error_of(kMoods, "target = 'mood'\nclasses = ['sad', 'glad', 'sad']\n"),
              HasSubstr("'sad' is named twice"));
  const std::string source = file(kMoods);
  const std::string short_ones = std::string(source).replace(source.find("= 8"), 3, "= 2");
  EXPECT_THAT(message_of<UserError>([&] { texts(short_ones); }),
              HasSubstr("sequence_length = 2: expected more than the 2 special tokens around a text"));
}

TEST_F(TextTableTest, TokensThatNoMachineHasRoomForAreRefused) {
  std::string rows;
  for (int i = 0; i < 1000; ++i) rows += kMoods;
  std::string keys = file(rows);
  keys.replace(keys.find("= 8"), 3, "= 1_000_000_000");
  EXPECT_THAT(message_of<UserError>([&] { texts(keys); }), HasSubstr("of memory, and this machine has"));
}

}  // namespace
}  // namespace tutti
