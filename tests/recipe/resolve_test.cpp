#include "recipe/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/key_check.h"

namespace tutti {
namespace {

using enum KeyType;

Setting value(Setting::Value value, const std::string& path, int line) {
  return Setting(std::move(value), path, {"r.toml", line});
}

Setting text(const char* text, const std::string& path, int line) {
  return value(std::string(text), path, line);
}

Setting recipe(Setting::Table members) { return Setting(std::move(members), "", {"r.toml", 0}); }

Setting section(const std::string& path, int line, Setting::Table members) {
  return Setting(std::move(members), path, {"r.toml", line});
}

Catalog walk() {
  return {.section = "walk",
          .noun = "gait",
          .doc = "",
          .keys = {Key{"speed", kNumber, "1.5", "metres a second"}.also_named({"velocity", "pace"}),
                   {"shoes", kPath, "none", "the shoes"}},
          .entries = {{"trot", "", {{"bounce", kBoolean, "true", "up and down"}}},
                      {"gallop", "", {{"legs", kInteger, "", "how many"}}}},
          .default_kind = "trot"};
}

std::string error_of(const Setting& recipe, std::span<const Catalog> catalogs) {
  try {
    resolve(recipe, catalogs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of(const Setting& recipe, const Catalog& catalog) {
  return error_of(recipe, {&catalog, 1});
}

TEST(Resolve, DefaultsAreFilledInInCatalogOrder) {
  const Catalog catalog = walk();
  const Setting out = resolve(recipe({}), {&catalog, 1});
  ASSERT_EQ(out.table().size(), 1u);
  const Setting::Table& keys = out.at("walk").table();
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0].first, "kind");
  EXPECT_EQ(keys[0].second.text(), "trot");
  EXPECT_EQ(keys[1].first, "speed");
  EXPECT_EQ(keys[1].second.number(), 1.5);
  EXPECT_EQ(keys[2].first, "shoes");
  EXPECT_TRUE(keys[2].second.is_none());
  EXPECT_FALSE(out.at("walk").has("shoes"));
  EXPECT_EQ(keys[3].first, "bounce");
  EXPECT_TRUE(keys[3].second.boolean());
}

TEST(Resolve, AliasesMoveToTheMainName) {
  const Catalog catalog = walk();
  const Setting given = recipe({{"walk", section("walk", 1, {{"pace", value(int64_t{3}, "walk.pace", 2)}})}});
  const Setting out = resolve(given, {&catalog, 1});
  EXPECT_EQ(out.at("walk").at("speed").number(), 3.0);
  EXPECT_EQ(out.at("walk").at("speed").path, "walk.speed");
  EXPECT_EQ(out.at("walk").at("speed").position.line, 2);
  EXPECT_EQ(out.at("walk").find("pace"), nullptr);
}

TEST(Resolve, ErrorsNameTheKeyThatWasGiven) {
  const Catalog catalog = walk();
  const auto error = [&](const char* name) -> std::string {
    const Setting given = recipe({{"walk", section("walk", 1, {{name, value(int64_t{3}, "walk", 2)}})}});
    const Setting out = resolve(given, {&catalog, 1});
    try {
      out.at("walk").at("speed").fail("too fast");
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error("pace"), "r.toml:2: walk.pace = 3.0: too fast");
  EXPECT_EQ(error("speed"), "r.toml:2: walk.speed = 3.0: too fast");
}

TEST(Resolve, TwoNamesOfOneKeyAreRefused) {
  const Setting given = recipe({{"walk", section("walk", 1,
                                                 {{"velocity", value(2.0, "walk.velocity", 2)},
                                                  {"pace", value(3.0, "walk.pace", 4)}})}});
  EXPECT_EQ(error_of(given, walk()),
            "r.toml:4: walk.pace = 3.0: given as velocity too (r.toml:2); keep one of the two");
}

TEST(Resolve, AnOverrideWinsOverAnotherNameInTheFile) {
  const Catalog catalog = walk();
  for (const char* name : {"speed", "velocity", "pace"}) {
    for (const char* other : {"speed", "velocity", "pace"}) {
      if (name == other) continue;
      Setting override = value(3.0, name, 0);
      override.position = {kOverrideFile, 0};
      const Setting::Table keys = {{other, value(2.0, other, 2)}, {name, override}};
      const Setting out = resolve(recipe({{"walk", section("walk", 1, keys)}}), {&catalog, 1});
      EXPECT_EQ(out.at("walk").at("speed").number(), 3.0) << name << " over " << other;
    }
  }
}

TEST(Resolve, ARefusedKindSaysWhyWhateverItsKeys) {
  Catalog catalog = walk();
  catalog.entries.push_back(refused_entry("fly", "that is [wings]'s affair"));
  const Setting given = recipe(
      {{"walk", section("walk", 1,
                        {{"kind", text("fly", "walk.kind", 2)}, {"height", value(2.0, "walk.height", 3)}})}});
  EXPECT_EQ(error_of(given, catalog), "r.toml:2: walk.kind = \"fly\": that is [wings]'s affair");
}

TEST(Resolve, UnknownKeysSuggestTheNearestName) {
  const Setting given = recipe({{"walk", section("walk", 1, {{"sped", value(2.0, "walk.sped", 7)}})}});
  EXPECT_EQ(error_of(given, walk()),
            "r.toml:7: walk.sped = 2.0: unknown key of gait trot; did you mean speed?");
}

TEST(Resolve, UnknownKeysNearNothingListWhatThereIs) {
  const Setting given = recipe({{"walk", section("walk", 1, {{"zzzzzz", value(true, "walk.zzzzzz", 7)}})}});
  EXPECT_EQ(error_of(given, walk()),
            "r.toml:7: walk.zzzzzz = true: unknown key of gait trot; there are speed, velocity, pace, shoes, "
            "bounce, kind");
}

TEST(Resolve, AKeyOfAnotherKindIsNamedAsThat) {
  const Setting given = recipe({{"walk", section("walk", 1, {{"legs", value(int64_t{4}, "walk.legs", 3)}})}});
  EXPECT_EQ(error_of(given, walk()),
            "r.toml:3: walk.legs = 4: unknown key of gait trot; it is a key of gallop");
}

TEST(Resolve, UnknownSectionsSuggestTheNearestName) {
  EXPECT_EQ(error_of(recipe({{"wlak", section("wlak", 5, {})}}), walk()),
            "r.toml:5: [wlak]: unknown section; did you mean walk?");
}

TEST(Resolve, KindsMayBeSpelledAsClasses) {
  const Catalog catalog = walk();
  for (const char* kind : {"gallop", "Gallop", "GallopGait", "gallop_gait"}) {
    const Setting given = recipe({{"walk", section("walk", 1,
                                                   {{"kind", text(kind, "walk.kind", 2)},
                                                    {"legs", value(int64_t{4}, "walk.legs", 3)}})}});
    EXPECT_EQ(resolve(given, {&catalog, 1}).at("walk").at("kind").text(), "gallop") << kind;
  }
}

TEST(Resolve, UnknownKindsSuggestTheNearestName) {
  const Setting given = recipe({{"walk", section("walk", 1, {{"kind", text("galop", "walk.kind", 2)}})}});
  EXPECT_EQ(error_of(given, walk()), "r.toml:2: walk.kind = \"galop\": unknown gait; did you mean gallop?");
}

TEST(Resolve, MissingRequiredKeysAreNamedWithTheSectionsLine) {
  const Setting given = recipe({{"walk", section("walk", 6, {{"kind", text("gallop", "walk.kind", 7)}})}});
  EXPECT_EQ(error_of(given, walk()), "r.toml:6: [walk]: legs is missing (how many: an integer)");
}

TEST(Resolve, AMissingSectionWithARequiredKindIsNamed) {
  Catalog catalog = walk();
  catalog.default_kind = "";
  EXPECT_EQ(error_of(recipe({}), catalog),
            "r.toml: [walk]: the section is missing; it needs kind (one of trot, gallop)");
  EXPECT_EQ(error_of(recipe({{"walk", section("walk", 3, {})}}), catalog),
            "r.toml:3: [walk]: kind is missing (one of trot, gallop)");
}

TEST(Resolve, ASectionThatMayBeAbsentIsNone) {
  Catalog catalog = walk();
  catalog.default_kind = "none";
  EXPECT_FALSE(resolve(recipe({}), {&catalog, 1}).has("walk"));
}

TEST(Resolve, AValueInPlaceOfASectionIsRefused) {
  EXPECT_EQ(error_of(recipe({{"walk", value(int64_t{1}, "walk", 2)}}), walk()),
            "r.toml:2: walk = 1: expected a table, [walk] with its keys below");
}

TEST(Resolve, AKindThatIsNoTextIsRefused) {
  const Setting given = recipe({{"walk", section("walk", 1, {{"kind", value(int64_t{3}, "walk.kind", 2)}})}});
  EXPECT_EQ(error_of(given, walk()), "r.toml:2: walk.kind = 3: expected a text");
}

TEST(Resolve, PathsAreRelativeToTheRecipesFolder) {
  const Catalog catalog = walk();
  Setting given = recipe({{"walk", section("walk", 1, {{"shoes", text("../shoes", "walk.shoes", 2)}})}});
  given.position.file = "/a/b/r.toml";
  EXPECT_EQ(resolve(given, {&catalog, 1}).at("walk").at("shoes").text(), "/a/shoes");
  given.find("walk")->find("shoes")->value = std::string("/x/shoes");
  EXPECT_EQ(resolve(given, {&catalog, 1}).at("walk").at("shoes").text(), "/x/shoes");
}

TEST(Resolve, WordsInPlaceOfAPathStayWords) {
  Catalog catalog = walk();
  catalog.keys[1].words = {"auto"};
  const Setting given = recipe({{"walk", section("walk", 1, {{"shoes", text("auto", "walk.shoes", 2)}})}});
  EXPECT_EQ(resolve(given, {&catalog, 1}).at("walk").at("shoes").text(), "auto");
}

TEST(Resolve, NestedSectionsKeepToTheirCatalogs) {
  const std::vector<Catalog> catalogs = {
      {.section = "go.up", .noun = "", .doc = "", .keys = {{"by", kInteger, "1", ""}}},
      {.section = "go.down", .noun = "", .doc = ""}};
  const Setting out = resolve(recipe({}), catalogs);
  EXPECT_EQ(out.at("go").at("up").at("by").integer(), 1);
  EXPECT_TRUE(out.at("go").at("down").table().empty());
  const Setting sideways = section("go", 1, {{"left", section("go.left", 2, {})}});
  EXPECT_EQ(error_of(recipe({{"go", sideways}}), catalogs),
            "r.toml:2: [go.left]: unknown section; there are go.up, go.down");
  EXPECT_EQ(error_of(recipe({{"go", value(true, "go", 4)}}), catalogs),
            "r.toml:4: go = true: expected the tables [go.up, go.down]");
}

TEST(Resolve, RepeatedSectionsAreListsOfTables) {
  Catalog catalog = walk();
  catalog.repeated = true;
  const Setting trot = section("walk.0", 1, {});
  const Setting gallop =
      section("walk.1", 2,
              {{"kind", text("gallop", "walk.1.kind", 3)}, {"legs", value(int64_t{4}, "walk.1.legs", 4)}});
  const Setting given = recipe({{"walk", value(Setting::Array{trot, gallop}, "walk", 1)}});
  const Setting resolved = resolve(given, {&catalog, 1});
  const Setting::Array& out = resolved.at("walk").array();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].at("kind").text(), "trot");
  EXPECT_EQ(out[1].at("legs").integer(), 4);
  EXPECT_TRUE(resolve(recipe({}), {&catalog, 1}).at("walk").array().empty());
  EXPECT_EQ(error_of(recipe({{"walk", trot}}), catalog),
            "r.toml:1: [walk.0]: expected [[walk]], once for each gait");
}

TEST(Resolve, TablesOfAKeyKeepToItsCatalog) {
  const auto gaits = std::make_shared<const Catalog>(walk());
  const Catalog trip{.section = "trip",
                     .noun = "",
                     .doc = "",
                     .keys = {Key{"walks", kTables, "", "one after another"}.each(gaits)}};
  const auto given = [](Setting::Value walks) {
    return recipe({{"trip", section("trip", 1, {{"walks", value(std::move(walks), "trip.walks", 2)}})}});
  };
  const Setting gallop = section(
      "trip.walks.1", 4,
      {{"kind", text("gallop", "trip.walks.1.kind", 5)}, {"leg", value(int64_t{4}, "trip.walks.1.leg", 6)}});
  const Setting trot = section("trip.walks.0", 3, {});
  const Setting resolved = resolve(given(Setting::Array{trot, trot}), {&trip, 1});
  EXPECT_EQ(resolved.at("trip").at("walks").array()[1].at("bounce").boolean(), true);
  EXPECT_EQ(resolve(resolved, {&trip, 1}).toml(), resolved.toml());
  EXPECT_EQ(error_of(given(Setting::Array{trot, gallop}), trip),
            "r.toml:6: trip.walks.1.leg = 4: unknown key of gait gallop; did you mean legs?");
  const std::string expected = "expected tables, each with a kind: one of trot, gallop";
  EXPECT_EQ(error_of(given(int64_t{3}), trip), "r.toml:2: trip.walks = 3: " + expected);
  EXPECT_EQ(error_of(given(Setting::Array{}), trip), "r.toml:2: trip.walks = []: " + expected);
  EXPECT_EQ(error_of(given(Setting::Array{value(true, "trip.walks.0", 2)}), trip),
            "r.toml:2: trip.walks.0 = true: expected a table, [trip.walks.0] with its keys below");
}

TEST(Resolve, KindIsAskedForByItsNameOrByATable) {
  const auto gaits = std::make_shared<const Catalog>(walk());
  const Catalog trip{.section = "trip",
                     .noun = "",
                     .doc = "",
                     .keys = {Key{"walk", kKindOrTable, "none", "how to get there"}.each(gaits)}};
  const auto given = [](Setting walk) {
    return recipe({{"trip", section("trip", 1, {{"walk", std::move(walk)}})}});
  };
  const auto walk_of = [&](Setting walk) {
    return resolve(given(std::move(walk)), {&trip, 1}).at("trip").at("walk");
  };
  const Setting table = section("trip.walk", 3, {{"kind", text("trot", "trip.walk.kind", 4)}});
  const std::string expected = "expected a name or a table with a kind: one of trot, gallop";
  EXPECT_EQ(walk_of(text("trot", "trip.walk", 2)).text(), "trot");
  EXPECT_EQ(walk_of(table).at("speed").number(), 1.5);
  EXPECT_EQ(error_of(given(text("trott", "trip.walk", 2)), trip),
            "r.toml:2: trip.walk = \"trott\": " + expected + "; did you mean \"trot\"?");
  EXPECT_EQ(error_of(given(value(true, "trip.walk", 2)), trip), "r.toml:2: trip.walk = true: " + expected);
  const Setting gallop = section("trip.walk", 3, {{"kind", text("gallop", "trip.walk.kind", 4)}});
  EXPECT_THAT(error_of(given(gallop), trip), testing::HasSubstr("legs is missing"));
  EXPECT_THAT(error_of(given(text("gallop", "trip.walk", 2)), trip), testing::HasSubstr("legs is missing"));
}

TEST(Resolve, PathsMayHaveATableInTheirPlace) {
  const Catalog trip{
      .section = "trip",
      .noun = "",
      .doc = "",
      .keys = {Key{"way", kPath, "none", "a map"}.each(std::make_shared<const Catalog>(walk()))}};
  const auto given = [](Setting way) {
    return recipe({{"trip", section("trip", 1, {{"way", std::move(way)}})}});
  };
  const auto way_of = [&](Setting way) {
    return resolve(given(std::move(way)), {&trip, 1}).at("trip").at("way");
  };
  EXPECT_TRUE(way_of(text("maps/alps", "trip.way", 2)).text().ends_with("/maps/alps"));
  const Setting table = section("trip.way", 3, {{"kind", text("trot", "trip.way.kind", 4)}});
  EXPECT_EQ(way_of(table).at("speed").number(), 1.5);
  const Setting again = resolve(given(way_of(table)), {&trip, 1}).at("trip").at("way");
  EXPECT_EQ(again.toml(), way_of(table).toml());
  EXPECT_THAT(error_of(given(value(true, "trip.way", 2)), trip),
              testing::HasSubstr("expected a path or a table with the keys of [walk]"));
  const Setting gallop = section("trip.way", 3, {{"kind", text("gallop", "trip.way.kind", 4)}});
  EXPECT_THAT(error_of(given(gallop), trip), testing::HasSubstr("legs is missing"));
}

class ResolveAlternatives : public testing::Test {
 protected:
  ResolveAlternatives() { catalog_.alternatives = {{{"feet", "metres"}, true}}; }
  Setting given(Setting::Table keys) { return recipe({{"far", section("far", 1, std::move(keys))}}); }

  Catalog catalog_{.section = "far",
                   .noun = "",
                   .doc = "",
                   .keys = {{"feet", kInteger, "none", ""}, {"metres", kInteger, "none", ""}}};
  Setting feet_ = value(int64_t{3}, "far.feet", 2);
  Setting metres_ = value(int64_t{1}, "far.metres", 5);
};

TEST_F(ResolveAlternatives, TwoAlternativesExcludeEachOther) {
  EXPECT_EQ(error_of(given({{"feet", feet_}, {"metres", metres_}}), catalog_),
            "r.toml:5: far.metres = 1: excludes far.feet (r.toml:2); keep one of the two");
}

TEST_F(ResolveAlternatives, ARequiredAlternativeIsMissed) {
  EXPECT_EQ(error_of(given({}), catalog_), "r.toml:1: [far]: feet is missing (or metres in its place)");
  catalog_.alternatives[0].required = false;
  EXPECT_EQ(error_of(given({}), catalog_), "no error");
}

TEST_F(ResolveAlternatives, AnOverrideWins) {
  for (Setting* chosen : {&feet_, &metres_}) {
    const Position written = std::exchange(chosen->position, {kOverrideFile, 0});
    const Setting out = resolve(given({{"feet", feet_}, {"metres", metres_}}), {&catalog_, 1}).at("far");
    EXPECT_EQ(out.has("feet"), chosen == &feet_);
    EXPECT_EQ(out.has("metres"), chosen == &metres_);
    chosen->position = written;
  }
}

}  // namespace
}  // namespace tutti
