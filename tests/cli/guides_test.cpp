#include "cli/guides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "cli/catalog_text.h"
#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kRoot = TUTTI_SOURCE_DIR;

std::string answer_to(const std::string& name) {
  try {
    return explain_text(all_catalogs(), foreign_names(), name, guides());
  } catch (const UserError& error) {
    return error.what();
  }
}

// Each line of the file: a word that a user of Composer, PyTorch, transformers or Slurm would type, and what
// the answer must name.
TEST(Guides, WordsThatUsersBringAreAnswered) {
  std::ifstream file(kRoot + "/tests/cli/explained_words.txt");
  int words = 0;
  for (std::string line; std::getline(file, line); ++words) {
    const auto bar = line.find(" | ");
    ASSERT_NE(bar, line.npos) << line;
    EXPECT_THAT(answer_to(line.substr(0, bar)), HasSubstr(line.substr(bar + 3))) << line;
  }
  EXPECT_GE(words, 200);
}

// Fields of transformers' TrainingArguments (5.0.0, some of versions before) and its configurations of the
// zoo's models, of PEFT's LoraConfig, of Streaming's datasets, and keys of llm-foundry's YAML files.
TEST(Guides, ArgumentsOfOtherProgramsAreAnswered) {
  std::ifstream file(kRoot + "/tests/cli/foreign_names.txt");
  int names = 0;
  for (std::string name; file >> name; ++names)
    EXPECT_THAT(answer_to(name), Not(HasSubstr("nothing is called"))) << name;
  EXPECT_GE(names, 250);
}

bool exists(const std::string& place) {
  if (place.starts_with("docs/")) return std::filesystem::exists(kRoot + '/' + place);
  if (place.starts_with("tutti ")) {
    std::string command = place.substr(6);
    std::ranges::replace(command, '-', '_');
    return text_of_file(kRoot + "/cli/commands.h").find("void add_" + command + "(") != place.npos;
  }
  return !place_text(all_catalogs(), place).empty();
}

TEST(Guides, LeadToPlacesThatExist) {
  for (const Guide& guide : guides())
    for (const std::string& place : guide.places)
      EXPECT_TRUE(exists(place)) << guide.names[0] << ": " << place;
}

TEST(Guides, HaveATextAndPlaces) {
  for (const Guide& guide : guides())
    EXPECT_TRUE(!guide.text.empty() && !guide.places.empty()) << guide.names[0];
  EXPECT_GT(guides().size(), 100u);
}

TEST(Guides, AWordHasOneGuide) {
  std::vector<std::string> all;
  for (const Guide& guide : guides()) all.insert(all.end(), guide.names.begin(), guide.names.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(same_name(all[i], all[k])) << all[i];
}

TEST(Guides, AreFoundInAnyCaseAndWithAnySigns) {
  EXPECT_EQ(guide_for(guides(), "Fine-Tuning"), guide_for(guides(), "fine_tuning"));
  EXPECT_EQ(guide_for(guides(), "torch.compile"), guide_for(guides(), "torch compile"));
  EXPECT_NE(guide_for(guides(), "torch.compile"), nullptr);
  EXPECT_EQ(guide_for(guides(), "no such word"), nullptr);
}

TEST(Guides, StandBeforeKeysThatAreCalledSo) {
  for (const char* word : {"warmup", "padding", "temperature"}) {
    const std::string text = answer_to(word);
    EXPECT_TRUE(text.starts_with(guide_for(guides(), word)->text)) << text;
    EXPECT_THAT(text, HasSubstr(std::string(word) + " = ")) << "the keys";
  }
}

TEST(Guides, AWordThatIsOnlyALittleAlikeIsNotSuggested) {
  EXPECT_EQ(answer_to("bleachers"), "nothing is called bleachers; `tutti list` shows what there is");
  EXPECT_EQ(answer_to("max_duratoin"), "nothing is called max_duratoin; did you mean max_duration?");
}

}  // namespace
}  // namespace tutti
