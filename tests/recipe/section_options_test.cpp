#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/resolve.h"
#include "recipe/section.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

enum class Pace { kSlow, kFast };

struct WalkSettings {
  Given<int> steps = 3;
  Given<Pace> pace = Pace::kSlow;
  Given<std::optional<double>> limit;
  Given<Numbers> weights;

  static Kind<WalkSettings> kind() {
    return {"walk",
            "A way on foot.",
            {option("steps", &WalkSettings::steps, "how many").at_least(1),
             option("pace", &WalkSettings::pace, "how fast", {{"slow", Pace::kSlow}, {"fast", Pace::kFast}})
                 .also_written({{"QUICK", "fast"}}),
             option("limit", &WalkSettings::limit, "the longest"),
             option("weights", &WalkSettings::weights, "of the bags")}};
  }
};

WalkSettings read_walk(const std::string& keys) {
  const Catalog catalog = section_catalog<WalkSettings>();
  return WalkSettings::kind().read(
      resolve(parse_recipe("[walk]\n" + keys, "test.toml"), {&catalog, 1}).at("walk"));
}

TEST(SectionOptionsTest, MembersWithoutAKeyHaveTheirDefaults) {
  const WalkSettings settings = read_walk("");
  EXPECT_EQ(settings.steps, 3);
  EXPECT_EQ(settings.pace, Pace::kSlow);
  EXPECT_FALSE(settings.limit->has_value());
  EXPECT_TRUE(settings.limit.is_absent());
  EXPECT_THAT(settings.weights->values, IsEmpty());
}

TEST(SectionOptionsTest, AMemberNamesItsKeyInErrors) {
  const WalkSettings settings = read_walk("pace = 'QUICK'\nsteps = 5\nlimit = 2.5");
  EXPECT_EQ(settings.pace, Pace::kFast);
  EXPECT_THAT(message_of<UserError>([&] { settings.pace.fail("too fast"); }),
              StartsWith("test.toml:2: walk.pace = \"fast\": too fast"));
  EXPECT_THAT(message_of<UserError>([&] { settings.steps.fail("too many"); }),
              StartsWith("test.toml:3: walk.steps = 5: too many"));
  EXPECT_EQ(**settings.limit, 2.5);
}

TEST(SectionOptionsTest, NumbersMayBeWrittenAsOne) {
  EXPECT_THAT(read_walk("weights = 2").weights->values, ElementsAre(2.0));
  EXPECT_THAT(read_walk("weights = [0.5, 1]").weights->values, ElementsAre(0.5, 1.0));
}

TEST(SectionOptionsTest, TheCatalogHasTypesAndBoundsOfTheMembers) {
  const Catalog catalog = section_catalog<WalkSettings>();
  EXPECT_EQ(catalog.section, "walk");
  EXPECT_EQ(catalog.doc, "A way on foot.");
  EXPECT_EQ(catalog.keys.at(0).fallback, "3");
  EXPECT_EQ(catalog.keys.at(2).fallback, "none");
  EXPECT_THAT(message_of<UserError>([] { read_walk("steps = 0"); }), HasSubstr("expected an integer >= 1"));
  EXPECT_THAT(message_of<UserError>([] { read_walk("pace = 'fats'"); }),
              HasSubstr("expected one of slow, fast"));
}

}  // namespace
}  // namespace tutti
