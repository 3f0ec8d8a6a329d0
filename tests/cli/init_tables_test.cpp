// `tutti init` on tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/init/draft.h"
#include "data/proposals/look.h"
#include "runtime/error.h"
#include "tests/cli/init_case.h"
#include "tests/io/reads_parquet.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class InitTablesTest : public InitCase {};

TEST_F(InitTablesTest, OtherCharactersMaySeparateCells) {
  write_text(scratch_.path("a.csv"), "age;price\n1;2.5\n2;3.5\n");
  EXPECT_EQ(line(proposed("a.csv").train, "delimiter"), "\";\"");
  write_text(scratch_.path("tab.csv"), "a\tb\tlabel\n1\t2\t0\n3\t4\t1\n");
  EXPECT_EQ(line(proposed("tab.csv").train, "delimiter"), "\"\\t\"");
  EXPECT_EQ(line(proposed("tab.csv").train, "target"), "\"label\"");
  write_text(scratch_.path("b.csv"), "age,\"x;y\"\n1,2.5\n");
  EXPECT_EQ(line(proposed("b.csv").train, "delimiter"), "");
}

TEST_F(InitTablesTest, AColumnOfTextsIsClassifiedWhereThereIsATokenizer) {
  std::string rows = "id,sentence,label\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i) + ",he said it " + std::to_string(i) + (i % 2 ? ",yes\n" : ",no\n");
  write_text(scratch_.path("train.csv"), rows);
  write_text(scratch_.path("dev.csv"), rows);
  EXPECT_EQ(line(proposed("train.csv").train, "kind"), "\"csv\"");
  std::filesystem::copy(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json",
                        scratch_.path("tokenizer.json"));
  const Proposal data = proposed("train.csv");
  for (const RecipeLines* lines : {&data.train, &data.eval}) {
    EXPECT_EQ(line(*lines, "kind"), "\"text_table\"");
    EXPECT_EQ(line(*lines, "tokenizer"), "\"tokenizer.json\"");
    EXPECT_EQ(line(*lines, "text"), "\"sentence\"");
  }
  EXPECT_EQ(line(data.train, "target"), "\"label\"");
  EXPECT_EQ(std::get<TextSamples>(data.samples).classes, 2);
  EXPECT_THAT(draft_recipe(data, {}), HasSubstr("bert_classification"));
}

TEST_F(InitTablesTest, TextsWithANumberAreGivenItWhereThereIsATokenizer) {
  std::string rows = "sentence,score\n";
  for (int i = 0; i < 60; ++i) rows += "he said it " + std::to_string(i) + "," + std::to_string(i) + ".5\n";
  write_text(scratch_.path("train.csv"), rows);
  std::filesystem::copy(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json",
                        scratch_.path("tokenizer.json"));
  const Proposal data = proposed("train.csv");
  EXPECT_EQ(line(data.train, "kind"), "\"text_table\"");
  EXPECT_EQ(line(data.train, "target_type"), "\"number\"");
  const std::string recipe = draft_recipe(data, {});
  EXPECT_THAT(recipe, AllOf(HasSubstr("bert_classification"), HasSubstr("loss = \"mse\"")));
  EXPECT_THAT(recipe, testing::Not(HasSubstr("num_classes")));
}

TEST_F(InitTablesTest, TheOnlyInputIsClassifiedIfItIsAColumnOfTextsOfAnyName) {
  std::string rows = "utterance,label\n", numbered = "utterance,score,label\n";
  for (int i = 0; i < 60; ++i) {
    const std::string text = "he said it " + std::to_string(i), label = i % 2 ? ",yes\n" : ",no\n";
    rows += text + label;
    numbered += text + "," + std::to_string(i) + label;
  }
  write_text(scratch_.path("train.csv"), rows);
  write_text(scratch_.path("numbered.csv"), numbered);
  std::filesystem::copy(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json",
                        scratch_.path("tokenizer.json"));
  EXPECT_EQ(line(proposed("train.csv").train, "text"), "\"utterance\"");
  EXPECT_EQ(line(proposed("numbered.csv").train, "kind"), "\"csv\"");
}

TEST_F(InitTablesTest, ColumnsThatAreNotReadAreNamedWithTheirCell) {
  std::string rows = "noise,price,label\n";
  for (int i = 0; i < 60; ++i)
    rows += "0.5," + (i == 7 ? "\"1,007\"" : std::to_string(i)) + "," + std::to_string(i % 2) + "\n";
  write_text(scratch_.path("t.csv"), rows);
  const Proposal data = proposed("t.csv");
  const std::string said = "not read: price (line 9 is '1,007'; 59 of its first 60 cells are numbers)";
  EXPECT_THAT(data.remarks, testing::ElementsAre(said));
  EXPECT_THAT(draft_recipe(data, {}), HasSubstr(said));
  EXPECT_EQ(line(data.train, "one_hot"), "");
}

TEST_F(InitTablesTest, ErrorsOfTablesNameLineColumnAndType) {
  const auto error_of = [&](const std::string& text) {
    write_text(scratch_.path("t.csv"), text);
    return message_of<UserError>([&] { proposed("t.csv"); });
  };
  EXPECT_THAT(error_of("a,b,label\n1,2,0\n3,4,\n5,6,1\n"),
              HasSubstr("line 3, column 'label', the target: a missing value"));
  EXPECT_THAT(error_of("a,b,label\n1,2,0\n3,4,1\na,b,label\n"),
              HasSubstr("not read: a (line 4 is 'a'; 2 of"));
  EXPECT_THAT(error_of("a,city,label\n1,K\xf6ln,0\n"),
              HasSubstr("line 2, column 'city': not UTF-8 (Latin-1?"));
}

TEST_F(InitTablesTest, ATableIsATableWhateverItIsCalled) {
  const auto rows = [](const std::string& names, const std::string& between, const std::string& last) {
    std::string text = names;
    for (int i = 0; i < 30; ++i)
      text += std::to_string(i * 7 % 9) + ".5" + between + "0." + std::to_string(i % 9) + between + last +
              std::to_string(i % 3) + "\n";
    return text;
  };
  write_text(scratch_.path("iris.data"), rows("", ",", "Iris-") + "\n");
  Proposal data = proposed("iris.data");
  EXPECT_EQ(data.count, 30);
  EXPECT_THAT(data.summary, HasSubstr(", 3 classes: "));
  EXPECT_EQ(line(data.train, "header"), "false");
  EXPECT_EQ(line(data.train, "delimiter"), "");
  for (const std::string name : {"a.tsv.txt", "a.dat", "a"}) {
    write_text(scratch_.path(name), rows("x\tz\tkind\n", "\t", "k"));
    data = proposed(name);
    EXPECT_EQ(data.count, 30);
    EXPECT_EQ(line(data.train, "kind"), "\"csv\"");
    EXPECT_EQ(line(data.train, "delimiter"), "\"\\t\"");
    EXPECT_EQ(line(data.train, "header"), "true") << "which is said";
    EXPECT_EQ(line(data.train, "target"), "\"kind\"");
  }
  write_text(scratch_.path("a.txt"), rows("x;z;y\n", ";", "0,"));
  EXPECT_THAT(message_of<UserError>([&] { proposed("a.txt"); }),
              HasSubstr("column 'y', the target: line 2 is"));
  std::string letters;
  for (int i = 0; i < 30; ++i) letters += i % 2 ? "p,x,s,n\n" : "e,x,y,w\n";
  write_text(scratch_.path("mushroom.data"), letters);
  EXPECT_EQ(proposed("mushroom.data").count, 29) << "the first line may have names";
  for (const char* last : {"", "9\t\"a car\""}) {
    write_text(scratch_.path("a.txt"), rows("", "   ", last));
    EXPECT_THAT(message_of<UserError>([&] { proposed("a.txt"); }),
                AllOf(HasSubstr("a table whose cells blanks separate"), HasSubstr("--tokenizer")));
  }
}

TEST_F(InitTablesTest, AProseOfManyCommasIsAText) {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += i % 3 ? "And in the year " + std::to_string(i) + ", it came to pass;\n"
                  : "so it was, he said, and 7.\n";
  write_text(scratch_.path("a.txt"), text);
  EXPECT_THAT(proposed("a.txt").summary, HasSubstr("every byte is a token"));
}

TEST_F(InitTablesTest, LinesOfJsonOrOfCodeAreNoTable) {
  std::string chats, code;
  for (int i = 0; i < 60; ++i) {
    chats += R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
             "\n";
    code += "  call(a, b, c, d);\n";
  }
  write_text(scratch_.path("chats.txt"), chats);
  EXPECT_THAT(message_of<UserError>([&] { proposed("chats.txt"); }), HasSubstr("JSON lines; call it .jsonl"));
  write_text(scratch_.path("code.txt"), code);
  EXPECT_THAT(proposed("code.txt").summary, HasSubstr("every byte is a token"));
}

TEST_F(InitTablesTest, ATargetOfNumbersInAnotherNotationIsNoClass) {
  for (const std::string cell : {"1.100,00", "3,5", "1'250.5"}) {
    std::string rows = "x;price\n";
    for (int i = 0; i < 30; ++i) rows += std::to_string(i) + ";" + (i % 3 ? cell : std::string("7")) + "\n";
    write_text(scratch_.path("t.csv"), rows);
    EXPECT_THAT(message_of<UserError>([&] { proposed("t.csv"); }),
                AllOf(HasSubstr("column 'price', the target: line 3 is '" + cell + "'"),
                      HasSubstr("write numbers as 1234.5")));
  }
}

TEST_F(InitTablesTest, NumbersInAnotherNotationAreNoTextsOfAFewValues) {
  std::string rows = "x;price;label\n";
  for (int i = 0; i < 30; ++i)
    rows += std::to_string(i % 7) + ";3," + std::to_string(i % 5) + ";" + std::to_string(i % 2) + "\n";
  write_text(scratch_.path("t.csv"), rows);
  const Proposal data = proposed("t.csv");
  EXPECT_EQ(line(data.train, "one_hot"), "");
  EXPECT_THAT(data.remarks,
              testing::Contains("not read: price (line 2 is '3,0'; 30 of its first 30 cells are numbers in "
                                "another notation than 1234.5, which is read)"));
}

TEST_F(InitTablesTest, InputsThatCountTheRowsAreSaid) {
  std::string rows = "id,x,label\n";
  for (int i = 0; i < 30; ++i)
    rows += std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(i % 2) + "\n";
  write_text(scratch_.path("t.csv"), rows);
  EXPECT_THAT(proposed("t.csv").remarks,
              testing::ElementsAre(HasSubstr("inputs that count the rows (0, 1, 2, ...), as an index does")));
}

TEST_F(InitTablesTest, TheTableToEvaluateOnIsKnownByItsName) {
  for (const auto& [train, eval] : {std::pair("train.csv", "val.csv"),
                                    {"my_train.csv", "my_test.csv"},
                                    {"training.csv", "testing.csv"},
                                    {"set/training_1.csv", "set/evaluation_1.csv"}}) {
    std::filesystem::create_directories(scratch_.path("set"));
    write_text(scratch_.path(train), "x,label\n0.5,1\n0.5,0\n");
    write_text(scratch_.path(eval), "x,label\n0.5,1\n");
    EXPECT_EQ(line(proposed(train).eval, "path"), '"' + std::string(eval) + '"');
    write_text(scratch_.path(eval), "x,other\n0.5,1\n");
    EXPECT_THAT(proposed(train).eval, testing::IsEmpty());
  }
}

TEST_F(InitTablesTest, AFirstRowOfNumbersIsARow) {
  write_text(scratch_.path("t.csv"), "1.5,2,0\n2.5,3,1\n3.5,3,1\n");
  const Proposal data = proposed("t.csv");
  EXPECT_EQ(data.count, 3);
  EXPECT_EQ(line(data.train, "header"), "false");
  EXPECT_EQ(line(data.train, "target"), "\"2\"");
  EXPECT_THAT(data.remarks, testing::ElementsAre(HasSubstr("t.csv: its first line has nothing but numbers")));
}

TEST_F(InitTablesTest, TargetsFrom1OnAreSaid) {
  write_text(scratch_.path("t.csv"), "x,label\n0.5,1\n0.5,3\n0.5,2\n");
  EXPECT_THAT(proposed("t.csv").remarks,
              testing::ElementsAre(HasSubstr("'label' has the whole numbers 1 to 3")));
  write_text(scratch_.path("t.csv"), "x,label\n0.5,1\n0.5,4\n0.5,2\n");
  EXPECT_THAT(proposed("t.csv").remarks, testing::IsEmpty());
}

TEST_F(InitTablesTest, WholeNumbersAreClassesWithAWordUnlessTheirNameSaysSo) {
  write_text(scratch_.path("t.csv"), "x,stars\n0.5,1\n0.5,0\n0.5,2\n");
  EXPECT_THAT(proposed("t.csv").remarks,
              testing::ElementsAre(HasSubstr("'stars' has the whole numbers 0 to 2, taken for classes")));
  write_text(scratch_.path("t.csv"), "x,label\n0.5,1\n0.5,0\n0.5,2\n");
  EXPECT_THAT(proposed("t.csv").remarks, testing::IsEmpty());
}

TEST_F(InitTablesTest, TextsThatDifferAreNoCategories) {
  std::string rows = "name,file,part,x,label\n";
  for (int i = 0; i < 12; ++i)
    rows += "n" + std::to_string(i) + ",p" + std::to_string(i % 2) + ".png," + (i % 3 ? "train," : "val,") +
            std::to_string(i % 5) + (i % 2 ? ",yes\n" : ",no\n");
  write_text(scratch_.path("t.csv"), rows);
  const Proposal data = proposed("t.csv");
  EXPECT_EQ(line(data.train, "one_hot"), "");
  EXPECT_THAT(data.remarks, testing::Contains(AllOf(HasSubstr("'file' names pictures, such as 'p0.png'"),
                                                    HasSubstr("root = \"FOLDER\""))));
  EXPECT_THAT(data.remarks, testing::Contains(HasSubstr("the column 'part' says which rows")));
  EXPECT_THAT(message_of<UserError>([&] { proposed("t.csv", "", {"name"}); }),
              HasSubstr("'name', the target, has 12 different texts in 12 rows: no classes"));
}

TEST_F(InitTablesTest, ATokenizerThatIsNamedNeedsAColumnOfTexts) {
  const std::string tokenizer = TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json";
  write_text(scratch_.path("t.csv"), "text,city,label\ngood,a,0\nbad,b,1\ngood,a,1\n");
  EXPECT_EQ(line(proposed("t.csv", tokenizer).train, "text"), "\"text\"");
  EXPECT_EQ(line(proposed("t.csv").train, "kind"), "\"csv\"");
  write_text(scratch_.path("t.csv"), "color,city,label\ngood,a,0\nbad,b,1\n");
  EXPECT_THAT(message_of<UserError>([&] { proposed("t.csv", tokenizer); }),
              HasSubstr("--tokenizer: no column is clearly the text"));
}

TEST_F(InitTablesTest, TargetsThatTheUserNamesAreColumns) {
  write_text(scratch_.path("t.csv"), "a,b,label\n1.5,2,0\n2.5,3,1\n");
  EXPECT_THAT(draft_recipe(proposed("t.csv", "", {"a"}), {}), HasSubstr("by --target"));
  EXPECT_THAT(message_of<UserError>([&] { proposed("t.csv", "", {"nope"}); }),
              HasSubstr("columns are a, b, label"));
  std::filesystem::create_directory(scratch_.path("folder"));
  EXPECT_THAT(message_of<UserError>([&] { proposed("folder", "", {"a"}); }),
              HasSubstr("--target is for tables"));
}

TEST_F(InitTablesTest, TimesAreSaidToMakeSeries) {
  write_text(scratch_.path("t.csv"), "sensor,hour,load\na,1,0.5\na,2,0.25\nb,1,0.5\n");
  const Proposal data = proposed("t.csv");
  EXPECT_THAT(data.remarks,
              testing::Contains(AllOf(HasSubstr("'hour' looks like a time"), HasSubstr("order = \"hour\""))));
  EXPECT_THAT(draft_recipe(data, {}), HasSubstr("#order = \"hour\""));
}

TEST_F(InitTablesTest, IndexOfPandasIsNeitherInputNorTarget) {
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  const Proposal data = look_at(TUTTI_SOURCE_DIR "/tests/golden/tables/index.parquet");
  EXPECT_EQ(line(data.train, "target"), "\"price\"");
  EXPECT_THAT(data.remarks, testing::ElementsAre("not read: __index_level_0__ (pandas' index)"));
}

TEST_F(InitTablesTest, ColumnsOfDatesAreLeftOut) {
  if (!reads_parquet()) GTEST_SKIP() << "built without pyarrow";
  const Proposal data = look_at(TUTTI_SOURCE_DIR "/tests/golden/tables/dates.parquet");
  EXPECT_EQ(line(data.train, "target"), "\"price\"");
  EXPECT_THAT(draft_recipe(data, {}), HasSubstr("not read: bought (timestamp["));
}

}  // namespace
}  // namespace tutti
