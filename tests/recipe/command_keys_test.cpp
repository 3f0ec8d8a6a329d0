#include "recipe/command_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(CommandName, IsTheFirstWord) {
  EXPECT_EQ(command_name("curl -H 'Authorization: s3cret' https://a"), "curl ...");
  EXPECT_EQ(command_name("  ./stream.sh \n"), "./stream.sh");
  EXPECT_EQ(command_name("TOKEN=s3cret  A_1=2 python3 send.py"), "python3 ...");
  EXPECT_EQ(command_name("TOKEN=s3cret send"), "send ...") << "not the whole command";
  EXPECT_EQ(command_name("cat\ts3cret"), "cat ...");
}

TEST(CommandName, IsNotTakenForACommand) {
  for (const char* name : {"...", "curl ...", "./a.sh ..."}) EXPECT_TRUE(is_command_name(name)) << name;
  for (const char* command : {"curl", "echo a ...", "cp {source} {target} ...", "A=1 b ...", "x; y ..."})
    EXPECT_FALSE(is_command_name(command)) << command;
}

TEST(CommandName, HasNothingOfAnUnusualWord) {
  for (const char* command :
       {"TOKEN='s3cret of mine' send", "TOKEN=$(cat s3cret) send", "\"s3cret\" x", "'s3cret'", "(s3cret)",
        "A=s3cret", "https://user:s3cret@host", "s3cret;x", "", "  "})
    EXPECT_EQ(command_name(command), "...") << command;
}

TEST(CommandName, OfANameIsTheName) {
  for (const char* command : {"curl -x", "A='b' c", "./x", "a b c"}) {
    const std::string once = command_name(command);
    EXPECT_EQ(command_name(once), once);
  }
}

constexpr const char* kCommands = R"(
run_name = "curl a b"
[data.train]
command = "zcat s3cret"
fetch = "aws s3cret"
[[loggers]]
kind = "command"
command = "python3 s3cret"
[[loggers]]
kind = "plugin"
options = { command = "left or right" }
)";

TEST(WithCommandNames, EachCommandOfARecipeIsNamed) {
  const std::string written = write_recipe(with_command_names(parse_recipe(kCommands, "r.toml")));
  EXPECT_THAT(written, Not(HasSubstr("s3cret")));
  for (const char* line : {"run_name = \"curl a b\"", "command = \"zcat ...\"", "fetch = \"aws ...\"",
                           "command = \"python3 ...\"", "command = \"left or right\""})
    EXPECT_THAT(written, HasSubstr(line));
  EXPECT_THAT(write_recipe(parse_recipe(kCommands, "r.toml")), HasSubstr("zcat s3cret"))
      << "what convert writes";
}

TEST(WithCommandNames, RecipesDifferByNamesAlone) {
  std::string other = kCommands;
  other.replace(other.find("zcat s3cret"), 11, "zcat another");
  EXPECT_TRUE(recipe_difference(parse_recipe(kCommands, "a"), parse_recipe(other, "b")).empty());
  other.replace(other.find("zcat"), 4, "xz");
  EXPECT_THAT(recipe_changes(parse_recipe(kCommands, "a"), parse_recipe(other, "b")),
              testing::ElementsAre("data.train.command = \"zcat ...\" (was \"xz ...\")"));
}

TEST(WithCommandNames, AnArgumentOfSetIsNamedToo) {
  EXPECT_EQ(with_command_name("data.train.command=zcat s3cret"), "data.train.command=zcat ...");
  EXPECT_EQ(with_command_name("--set=loggers.0.command=curl -u a=s3cret"),
            "--set=loggers.0.command=curl ...");
  EXPECT_EQ(with_command_name("data.train.command = zcat s3cret"), "data.train.command =zcat ...");
  EXPECT_EQ(with_command_name("data.train.fetch=\"aws s3cret\""), "data.train.fetch=...");
  EXPECT_EQ(with_command_name("loggers=[{kind='jsonl'}, {kind='command', command='curl s3cret'}]"),
            "loggers=...");
  for (const char* word : {"train", "a.toml", "optimizer.lr=0.1", "--set", "run_name=a b"})
    EXPECT_EQ(with_command_name(word), word);
}

TEST(CommandKey, IsNamedInErrors) {
  const Setting recipe = parse_recipe(kCommands, "r.toml");
  const Setting& command = recipe.at("data").at("train").at("command");
  const std::string line = "\n    4 | command = ...\n      | ";
  EXPECT_EQ(message_of<UserError>([&] { command.fail("wrong"); }),
            "r.toml:4: data.train.command = \"zcat ...\": wrong" + line + "          ^^^");
  EXPECT_EQ(message_of<UserError>([&] { command.fail_key("wrong"); }),
            "r.toml:4: data.train.command = \"zcat ...\": wrong" + line + "^^^^^^^");
  EXPECT_EQ(message_of<UserError>([&] { command.fail(UserError({"zcat ..."}, "failed")); }),
            "r.toml:4: data.train.command = \"zcat ...\": failed" + line + "          ^^^");
}

// The error on each value of the recipe, and on each key.
std::vector<std::string> errors_on(const Setting& setting) {
  std::vector<std::string> all;
  for (const bool key : {false, true})
    all.push_back(message_of<UserError>([&] { key ? setting.fail_key("wrong") : setting.fail("wrong"); }));
  const auto add = [&](const Setting& below) {
    for (const std::string& one : errors_on(below)) all.push_back(one);
  };
  if (setting.is_table())
    for (const auto& [name, member] : setting.table()) add(member);
  if (setting.is_array())
    for (const Setting& item : setting.array()) add(item);
  return all;
}

TEST(CommandKey, IsNamedInErrorsOfEachForm) {
  for (const char* form :
       {"command = [\"curl\", \"s3cret\"]", "command = [\n\"curl\",\n\"s3cret\"\n]\nother = 1",
        "comand = \"curl s3cret\"", "Fetch-command = \"curl s3cret\"", "\"fetsh\" = 'curl s3cret'",
        "data.fetch=\"\"\"curl [ s3cret\n s3cret\"\"\"\nother = 1",
        "train = { command = \"curl s3cret\", batch_sise = 3 }",
        "[[loggers]]\nkind = \"command\"\ncommands = \"curl s3cret\"",
        "loggers = [{kind=\"command\", command = [\"]\",\n\"s3cret\"], kind2 = 4}]",
        "[[loggers]]\nkind = \"command\"\ncmd = \"curl s3cret\"", "shell = \"curl s3cret\"",
        "loggers = [\n{kind = \"jsonl\"},\n{cammand = [\"curl\", \"s3cret\"], kind = 3}]"})
    for (const std::string& error : errors_on(parse_recipe(form, "r.toml")))
      EXPECT_THAT(error, Not(HasSubstr("s3cret"))) << form;
}

TEST(CommandKey, IsNotShownWhereTheTomlIsWrong) {
  for (const char* form :
       {"command = \"curl s3cret", "command = curl s3cret", "fetch = \"curl\" s3cret",
        "a = 1\ncommand = 'a s3cret\nb = 2", "x = { command = \"s3cret y\", b c }",
        "command = \"\"\"\ncurl s3cret", "command = [\"a\",\n\"b\" s3cret]\n", "command: curl s3cret",
        "command \"curl s3cret\"", "command = [\"x]\",\n\"s3cret\" oops]"}) {
    const std::string error = message_of<UserError>([&] { parse_recipe(form, "r.toml"); });
    EXPECT_THAT(error, AllOf(HasSubstr("this is not TOML"), Not(HasSubstr("s3cret")))) << form;
  }
  EXPECT_THAT(message_of<UserError>([] { parse_recipe("command = \n", "r.toml"); }),
              HasSubstr("there is no value behind the ="));
}

TEST(CommandKey, IsNamedInErrorsOnSet) {
  for (const std::string text :
       {"data.train.command = curl s3cret", "data..command=curl s3cret", "a.0.fetch=curl s3cret",
        "loggers=[{kind='command', command='curl s3cret'}]", "data.train={ command = 'curl s3cret' }"})
    EXPECT_THAT(message_of<UserError>([&] {
                  throw UserError(joined(errors_on(parse_recipe("a = [1]", "r.toml", {&text, 1}))));
                }),
                AllOf(HasSubstr("--set"), Not(HasSubstr("s3cret"))))
        << text;
}

TEST(CommandKey, LeavesTheLinesOfARecipeInTheirPlaces) {
  const std::string recipe = "a = 1\ncommand = [\n'x',\n'y']\nb = 2 # c\nfetch='''\n'''\nd = \"e = f\"\n";
  EXPECT_EQ(without_commands(recipe), "a = 1\ncommand = ...\n\n\nb = 2 # c\nfetch=...\n\nd = \"e = f\"\n");
}

TEST(CommandKey, OfARecipeThatARunHasWrittenIsNoCommand) {
  const Setting recipe = with_command_names(parse_recipe(kCommands, "r.toml"));
  try {
    require_whole_command(recipe.at("data").at("train").at("command"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("give the whole: --set data.train.command='...'"));
  }
  EXPECT_NO_THROW(
      require_whole_command(parse_recipe(kCommands, "r.toml").at("data").at("train").at("command")));
}

void collect_commands(const Catalog& catalog, std::set<std::string>& found) {
  const auto add = [&](const Key& key) {
    if (key.type == KeyType::kText && names_command(key.name)) found.insert(key.name);
    if (key.doc.find("command line") != std::string::npos || key.doc.find("/bin/sh") != std::string::npos)
      found.insert(key.name);
    if (key.tables) collect_commands(*key.tables, found);
  };
  for (const Key& key : catalog.keys) add(key);
  for (const Entry& entry : catalog.entries)
    for (const Key& key : entry.keys) add(key);
}

TEST(CommandKey, OfEachSectionIsKnown) {
  std::set<std::string> found;
  for (const Catalog& catalog : recipe_catalogs()) collect_commands(catalog, found);
  EXPECT_EQ(found, (std::set<std::string>{"command", "delete_command", "fetch", "fetch_command",
                                          "list_command", "upload_command"}));
  for (const std::string& key : found) EXPECT_TRUE(names_command("a.b." + key));
}

}  // namespace
}  // namespace tutti
