#include "cli/topics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/catalog_text.h"
#include "job/recipe_catalogs.h"
#include "recipe/dotted_path.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string about(const std::string& topic) { return explain_text(all_catalogs(), topic); }

TEST(Topics, AreFoundByWordsOfTexts) {
  EXPECT_THAT(about("learning rate"), StartsWith("optimizer.lr "));
  EXPECT_THAT(about("learning rate"), HasSubstr("\nlr_monitor "));
  EXPECT_THAT(about("learning rate"), HasSubstr("\nscheduler "));
}

TEST(Topics, AreFoundByWordsOfNames) {
  EXPECT_THAT(about("accuracy"), HasSubstr("MulticlassAccuracy "));
  EXPECT_THAT(about("accuracy"), HasSubstr("MaskedAccuracy "));
  EXPECT_THAT(about("batch size"), StartsWith("data.train.batch_size "));
}

TEST(Topics, AreFoundBySynonyms) {
  EXPECT_THAT(about("fsdp"), StartsWith("sharding "));
  EXPECT_THAT(about("early stopping"), StartsWith("early_stopper "));
  EXPECT_THAT(about("gpu"), HasSubstr("device "));
  EXPECT_THAT(about("gradient accumulation"), HasSubstr("train.grad_accum"));
  EXPECT_THAT(about("data loader"), HasSubstr("data.train "));
  EXPECT_THAT(about("Validation"), HasSubstr("data.eval "));
}

TEST(Topics, ANameThatIsExactIsExplainedInstead) {
  EXPECT_THAT(about("lr"), StartsWith("[optimizer] kind = \"sgd\""));
  EXPECT_THAT(about("adamw"), StartsWith("optimizer adamw\n"));
  EXPECT_THAT(about("bf16"), StartsWith("[deepspeed]\n"));
  EXPECT_THAT(about("bf16"), HasSubstr("\nSee also train.precision, precision"));
}

TEST(Topics, EveryLineBeginsWithANameThatIsExplained) {
  for (const char* topic : {"learning rate", "accuracy", "memory", "checkpoint names", "picture"}) {
    std::istringstream lines(about(topic));
    int count = 0;
    for (std::string line; std::getline(lines, line) && !line.empty() && !line.starts_with("..."); ++count) {
      const std::string name = line.substr(0, line.find(' '));
      EXPECT_THAT(about(name), Not(HasSubstr("says more of each"))) << name;
    }
    EXPECT_GT(count, 0) << topic;
    EXPECT_LE(count, 14) << topic;
  }
}

// By its last part, as "eval" names data.eval.
bool names_a_subject(const std::string& name) {
  const auto has = [&](const auto& keys) {
    return std::ranges::any_of(keys, [&](const Key& key) { return key.name == name && !key.refused(); });
  };
  return std::ranges::any_of(all_catalogs(), [&](const Catalog& catalog) {
    return catalog.section == name || last_part(catalog.section) == name || has(catalog.keys) ||
           std::ranges::any_of(catalog.entries,
                               [&](const Entry& entry) { return entry.name == name || has(entry.keys); });
  });
}

TEST(Topics, SynonymsNameWhatThereIs) {
  EXPECT_GT(synonyms().size(), 30u);
  for (const auto& [word, names] : synonyms()) {
    EXPECT_NE(see_also(all_catalogs(), word), "") << word;
    for (const std::string& name : names) EXPECT_TRUE(names_a_subject(name)) << word << " > " << name;
  }
}

TEST(Topics, ATypoIsNoTopic) {
  EXPECT_EQ(topic_text(all_catalogs(), "acuracy", WordMatch::kBegun), "");
  for (const auto& [typo, meant] : {std::pair{"acuracy", "accuracy"}, {"momentm", "momentum"}}) try {
      about(typo);
      ADD_FAILURE() << "it was explained";
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), std::string("nothing is called ") + typo + "; did you mean " + meant + "?");
    }
}

}  // namespace
}  // namespace tutti
