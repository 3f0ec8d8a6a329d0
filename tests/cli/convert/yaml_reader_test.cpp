#include "cli/convert/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;

Setting read(const std::string& yaml) { return parse_yaml(yaml, "r.yaml"); }

std::string error_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const UserError& error) {
    return error.headline();
  }
  return "no error";
}

TEST(YamlReader, PlainTextsAreNumbersAndTruthsAndNone) {
  const Setting yaml = read(
      "whole: 17\nless: -3\nlr: 6.0e-4\nsmall: 1e-5\nyes: true\noff: off\nblank:\nnone: null\ntilde: ~\n"
      "time: 100ba\nquoted: '17'\n");
  EXPECT_EQ(yaml.at("whole").integer(), 17);
  EXPECT_EQ(yaml.at("less").integer(), -3);
  EXPECT_EQ(yaml.at("lr").number(), 6.0e-4);
  EXPECT_EQ(yaml.at("small").number(), 1e-5);
  EXPECT_TRUE(yaml.at("yes").boolean());
  EXPECT_FALSE(yaml.at("off").boolean());
  for (const char* none : {"blank", "none", "tilde"}) EXPECT_FALSE(yaml.has(none)) << none;
  EXPECT_EQ(yaml.at("time").text(), "100ba");
  EXPECT_EQ(yaml.at("quoted").text(), "17");
}

TEST(YamlReader, AliasesAndReferencesStandForSoManyValues) {
  std::string aliases = "a: &a [1, 2]\n", references = "v0: xxxxxxxxxx\n", lists = "v0: [1, 2]\n";
  for (int i = 0; i < 20; ++i) {
    const std::string name(1, static_cast<char>('b' + i)), before(1, static_cast<char>('a' + i));
    aliases += name + ": &" + name + " [";
    references += "v" + std::to_string(i + 1) + ": ";
    lists += "v" + std::to_string(i + 1) + ": [";
    for (int k = 0; k < 9; ++k) {
      aliases += (k == 0 ? "*" : ", *") + before;
      references += "${v" + std::to_string(i) + "}";
      lists += (k == 0 ? "" : ", ") + ("'${v" + std::to_string(i) + "}'");
    }
    aliases += "]\n", references += "\n", lists += "]\n";
  }
  EXPECT_THAT(error_of(aliases), HasSubstr("more than 100,000 values, with those that aliases stand for"));
  EXPECT_THAT(error_of(references), HasSubstr("with those that references stand for"));
  EXPECT_THAT(error_of(lists), HasSubstr("with those that references stand for"));
  const std::string large(1 << 20, 'x');
  EXPECT_THAT(error_of("a: " + large + "\nb: ${a}${a}${a}${a}\nc: ${b}${b}${b}${b}${b}\n"),
              HasSubstr("the references in it stand for too long a text"));
}

// Longer than regular expressions are matched on the stack.
TEST(YamlReader, NamesOfReferencesMayBeLong) {
  const std::string name(1 << 20, 'a');
  EXPECT_EQ(read("x: 1\ny: ${" + name + "}").at("y").text(), "${" + name + "}");
  EXPECT_EQ(read("x: 1\ny: a ${x}${ ${x} ${x").at("y").text(), "a 1${ 1 ${x");
}

TEST(YamlReader, ValuesKnowTheirPathAndLine) {
  const Setting yaml = read("# a comment\nmodel:\n  betas:\n  - 0.9\n  - 0.95\n");
  const Setting& second = yaml.at("model").at("betas").array().at(1);
  EXPECT_EQ(second.path, "model.betas.1");
  EXPECT_EQ(second.position.line, 5);
  EXPECT_EQ(second.number(), 0.95);
}

TEST(YamlReader, ReferencesAreTheValuesThatTheyName) {
  const Setting yaml = read(
      "variables:\n  length: 2048\n  name: a\n  run: ${variables.name}-${variables.length}\n"
      "max_seq_len: ${variables.length}\nrun_name: runs/${variables.run}\nhome: ${oc.env:HOME}\n"
      "loaders: [{length: '${max_seq_len}'}]\n");
  EXPECT_EQ(yaml.at("max_seq_len").integer(), 2048);
  EXPECT_EQ(yaml.at("run_name").text(), "runs/a-2048");
  EXPECT_EQ(yaml.at("home").text(), "${oc.env:HOME}");
  EXPECT_EQ(read("b: ${c.d}\n").at("b").text(), "${c.d}");
  EXPECT_EQ(read("parameters: {a: 7, b: '${a}'}\n").at("parameters").at("b").integer(), 7);
  EXPECT_EQ(yaml.at("loaders").array().at(0).at("length").integer(), 2048);
}

TEST(YamlReader, MergedMapsGiveWhatAMapDoesNotHave) {
  const Setting yaml = read("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{z: 4}, *a]}\n");
  EXPECT_EQ(yaml.at("b").toml(), "{y = 3, x = 1}");
  EXPECT_EQ(yaml.at("c").toml(), "{z = 4, x = 1, y = 2}");
}

TEST(YamlReader, WrongFilesAreErrorsWithTheirLine) {
  EXPECT_THAT(error_of("a: ${b}\nb: ${a}\n"), HasSubstr("the references go in a circle"));
  EXPECT_THAT(error_of("a: [1, 2\nb: 3\n"), HasSubstr("r.yaml:2: this is not YAML: "));
  EXPECT_THAT(error_of("- 1\n"), HasSubstr("expected keys and values in YAML"));
  EXPECT_THAT(error_of("a: " + std::string(100, '[') + std::string(100, ']')),
              HasSubstr("nested too deeply"));
  EXPECT_THROW(read_yaml("/nonexistent.yaml"), UserError);
}

}  // namespace
}  // namespace tutti
