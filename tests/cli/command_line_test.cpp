// The command line as declared, parsed without running anything.
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "cli/help/described.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// The whole command line; `parsed` is the subcommand that a line chose.
struct CommandLine {
  CommandLine() { add_commands(app, action); }

  std::string parsed(std::string line) {
    line = line.substr(line.find("tutti ") + 6);
    line = line.substr(0, std::min(line.find("  #"), line.find(" # ")));
    for (const char* end : {" > ", " < ", " | ", ")"}) line = line.substr(0, line.find(end));
    app.parse(line, false);
    return app.get_subcommands().at(0)->get_name();
  }

  CLI::App app{"", "tutti"};
  Action action;
};

std::vector<DescribedCommand> declared() {
  CommandLine line;
  return describe(line.app);
}

TEST(Examples, EveryCommandHasSome) {
  for (const auto& command : declared())
    if (!command.name.empty()) EXPECT_FALSE(command.examples.empty()) << command.name;
}

TEST(Examples, EveryExampleIsALineOfItsCommand) {
  for (const auto& command : declared())
    for (const auto& example : command.examples) {
      CommandLine line;
      try {
        EXPECT_EQ(line.parsed(example), command.name) << example;
        EXPECT_TRUE(line.action) << example;
      } catch (const CLI::ParseError& error) {
        ADD_FAILURE() << example << ": " << error.what();
      }
    }
}

TEST(Examples, EndTheHelp) {
  CommandLine line;
  const std::string help = command_named(line.app, "train").help("tutti");
  EXPECT_THAT(help, HasSubstr("\nExamples:\n  tutti train recipe.toml\n"));
}

TEST(Described, EveryValueHasAKnownPlaceholder) {
  for (const auto& command : declared())
    for (const auto& option : command.options)
      if (!option.is_flag()) offer_of(option.placeholder);
}

TEST(Described, PlaceholdersSayWhatMayFollow) {
  EXPECT_EQ(offer_of("RECIPE").kind, Offer::Kind::kRecipes);
  EXPECT_EQ(offer_of("step=N").kind, Offer::Kind::kNothing);
  const Offer resume = offer_of("auto|PATH");
  EXPECT_EQ(resume.kind, Offer::Kind::kPaths);
  EXPECT_EQ(resume.words, std::vector<std::string>{"auto"});
}

TEST(Described, HiddenOptionsStayHidden) {
  for (const auto& command : declared())
    for (const auto& option : command.options)
      for (const auto& name : option.names)
        for (const char* hidden : {"--share-of", "--start", "--start-a", "--start-b"})
          EXPECT_NE(name, hidden) << command.name;
}

TEST(Attempt, OldNameOfTheOptionIsAccepted) {
  for (const char* text : {"tutti replay run --attempt 2", "tutti replay run --start 2",
                           "tutti timeline run --start 2", "tutti diff a b --start-a 1 --start-b 2"}) {
    CommandLine line;
    EXPECT_NO_THROW(line.parsed(text)) << text;
    EXPECT_THAT(command_named(line.app, "replay").help("tutti"), Not(HasSubstr("--start")));
  }
}

// What completes the line that ends with the last word.
std::string completed(const std::vector<std::string>& words) {
  const CommandLine line;
  return completions(line.app, words);
}

TEST(Completion, OffersCommandsAndOptionsWithTheirDescriptions) {
  EXPECT_THAT(completed({""}), StartsWith("words\ninit\t"));
  EXPECT_EQ(completed({}), completed({""}));
  EXPECT_THAT(completed({"tr"}), HasSubstr("\ntrain\tTrain"));
  EXPECT_THAT(completed({"help", ""}), HasSubstr("\ntrain\tTrain"));
  EXPECT_THAT(completed({"-"}), HasSubstr("\n--version\tPrint the versions"));
  EXPECT_THAT(completed({"train", "--"}), HasSubstr("\n--run-dir=\tthe run's folder\n"));
  EXPECT_THAT(completed({"train", "--"}), HasSubstr("\n--json\t"));
  EXPECT_THAT(completed({"train", "--"}), Not(HasSubstr("--version")));
  EXPECT_EQ(completed({"unknown", ""}), "words\n");
}

TEST(Completion, OffersAnArgumentByItsPlace) {
  EXPECT_EQ(completed({"train", ""}), "recipes\n");
  EXPECT_EQ(completed({"train", "a.toml", ""}), "words\n");
  EXPECT_EQ(completed({"new", ""}), "words\nplugin\t\nprogram\t\n");
  EXPECT_EQ(completed({"eval", ""}), "recipes\n") << "and folders, of runs";
  EXPECT_EQ(completed({"eval", "runs/a", "--checkpoint", ""}), "files\nbest\t\nlatest\t\n");
  EXPECT_EQ(completed({"logs", ""}), "folders\n");
  EXPECT_EQ(completed({"train", "--run-dir", "runs", ""}), "recipes\n");
  EXPECT_EQ(completed({"train", "--run-dir=runs", ""}), "recipes\n");
  EXPECT_EQ(completed({"train", "--run-dir", "=", "runs", ""}), "recipes\n") << "cut by bash";
  EXPECT_EQ(completed({"stop", ""}), "folders\n");
  EXPECT_EQ(completed({"completion", ""}), "words\nbash\t\nzsh\t\nfish\t\n");
  EXPECT_THAT(completed({"list", ""}), HasSubstr("\noptimizers\t\n"));
  EXPECT_THAT(completed({"explain", "learning", ""}), HasSubstr("\nmomentum\t"));
}

TEST(Completion, OffersTheValueOfAnOption) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"train", "--run-dir", ""}, {"train", "--run-dir=ru"}, {"train", "--run-dir", "=", "ru"}})
    EXPECT_EQ(completed(words), "folders\n") << testing::PrintToString(words);
  EXPECT_EQ(completed({"train", "--resume", ""}), "files\nauto\t\n");
  EXPECT_EQ(completed({"train", "--json="}), "words\n") << "a flag has none";
  EXPECT_THAT(completed({"train", "--set", ""}), HasSubstr("\noptimizer.momentum=\t"));
  EXPECT_THAT(completed({"train", "--set=model.ki"}), HasSubstr("\nmodel.kind=\t"));
  EXPECT_EQ(completed({"train", "--set", "optimizer.lr="}), "words\n") << "a number";
}

TEST(ManPage, HasEveryCommandAndOption) {
  const auto commands = declared();
  const std::string page = man_page(commands);
  for (const auto& command : commands) {
    if (!command.name.empty()) EXPECT_THAT(page, HasSubstr("\n.SS tutti " + command.name + '\n'));
    for (const auto& option : command.named())
      for (std::string name : option.names) {
        for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
          name.replace(at, 1, "\\-");
        EXPECT_THAT(page, HasSubstr("\\fB" + name + "\\fR"));
      }
  }
}

TEST(Version, SaysWhatItIsBuiltOfAndRunsOn) {
  EXPECT_THAT(version_text(), MatchesRegex("tutti [0-9.]+\n"
                                           "commit    [^\n]+\n"
                                           "compiler  [^\n]+\n"
                                           "libtorch  [0-9]+\\.[0-9]+[^\n]*\n"
                                           "MPI       [^\n]+\n"
                                           "HDF5      [0-9]+\\.[0-9]+\\.[0-9]+\n"
                                           "CPU       (AVX512|AVX2|DEFAULT)\n"
                                           "CUDA      [^\n]+(\nNCCL      [0-9.]+)?"));
}

}  // namespace
}  // namespace tutti
