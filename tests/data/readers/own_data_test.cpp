#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

Setting section(const std::string& path, const std::string& sampling,
                const std::string& on_uneven = "error") {
  return section_with({{"kind", std::string("bytes")},
                       {"path", path},
                       {"sequence_length", int64_t{4}},
                       {"split", std::string("all")},
                       {"eval_fraction", 0.1},
                       {"sampling", sampling},
                       {"on_uneven", on_uneven}});
}

class OwnDataTest : public testing::Test {
 protected:
  OwnDataTest() {
    write_text(folder_.path("part-0-here"), "abcdefghijklm");  // 3 samples
    write_text(folder_.path("part-1-here"), "nopqrstuvwxyz");
    write_text(folder_.path("part-2-here"), "123456789");  // 2
  }

  PerRankData settled(int world, const std::string& on_uneven = "error") {
    const Setting parts = section(folder_.path("part-{rank}-{host}"), "own", on_uneven);
    PerRankData data;
    std::vector<std::string> facts;
    for (int rank = 0; rank < world; ++rank) {
      data.datasets.push_back(make_per_rank_dataset(parts, 1, {rank, "here"}));
      facts.push_back(facts_text(*data.datasets.back()));
    }
    merge_facts(data, parts, facts);
    return data;
  }

  Scratch folder_;
};

TEST_F(OwnDataTest, EachRankOpensItsFile) {
  const PerRankData data = settled(2);
  EXPECT_EQ(data.samples, 3);
  EXPECT_NE(data.datasets[0]->digest(), data.datasets[1]->digest());
}

TEST_F(OwnDataTest, DigestIsOfAllRanksInTheirOrder) {
  const PerRankData two = settled(2);
  write_text(folder_.path("part-1-here"), "Nopqrstuvwxyz");
  const PerRankData other = settled(2);
  EXPECT_NE(two.digest, other.digest);
  const std::string first = read_text(folder_.path("part-0-here"));
  write_text(folder_.path("part-0-here"), read_text(folder_.path("part-1-here")));
  write_text(folder_.path("part-1-here"), first);
  EXPECT_NE(settled(2).digest, other.digest);
}

TEST_F(OwnDataTest, UnevenLengthsAreAnErrorUnlessTheShortestIsToDo) {
  const auto why = message_of<UserError>([this] { settled(3); });
  EXPECT_THAT(why, HasSubstr("section.path = "));
  EXPECT_THAT(why, HasSubstr("the ranks have 3, 3, 2 samples; on_uneven = \"shortest\""));
  EXPECT_EQ(settled(3, "shortest").samples, 2);
}

TEST_F(OwnDataTest, SamplesOfAnotherShapeAreAnError) {
  PerRankData data;
  const Setting parts = section(folder_.path("part-{rank}-{host}"), "own");
  Setting longer = parts;
  longer.find("sequence_length")->value = int64_t{3};
  const auto facts = [](const Setting& one) {
    return facts_text(*make_per_rank_dataset(one, 1, {0, "here"}));
  };
  const auto why = message_of<UserError>([&] { merge_facts(data, parts, {facts(parts), facts(longer)}); });
  EXPECT_THAT(why, HasSubstr("rank 1 have other arrays or shapes"));
}

// Both ranks have the same file.
TEST_F(OwnDataTest, RanksDrawNumbersOfTheirOwn) {
  const Catalog catalog = train_data_catalog();
  write_text(folder_.path("0"), std::string(4000, 'a'));
  write_text(folder_.path("1"), std::string(4000, 'a'));
  const std::string toml = "[data.train]\nkind = 'bytes'\nbatch_size = 2\nsampling = 'own'\npath = '" +
                           folder_.path("{rank}") +
                           "'\n[[data.train.transforms]]\nkind = 'mask_tokens'\nmask_token_id = 255\n";
  const Setting recipe = resolve(parse_recipe(toml, "r.toml"), std::span(&catalog, 1));
  const auto target = [&](int rank) {
    const auto data = make_per_rank_dataset(recipe.at("data").at("train"), 1, {rank, "here"});
    return data->get(std::vector<int64_t>{0, 1, 2}, {.seed = 1})["target"];
  };
  EXPECT_TRUE(at::equal(target(0), target(0)));
  EXPECT_FALSE(at::equal(target(0), target(1)));
}

TEST_F(OwnDataTest, APlaceholderNeedsSamplingOfItsOwn) {
  const auto why = message_of<UserError>([] { has_per_rank_data(section("part-{rank}", "global")); });
  EXPECT_THAT(why, HasSubstr("section.path = \"part-{rank}\""));
  EXPECT_THAT(why, HasSubstr("section.sampling = \"own\""));
  EXPECT_FALSE(has_per_rank_data(section("part", "global")));
  EXPECT_TRUE(has_per_rank_data(section("part", "own")));
}

TEST_F(OwnDataTest, AnyOtherPlaceholderIsAnError) {
  const auto why = [](const std::string& path) {
    return message_of<UserError>([&] { has_per_rank_data(section(path, "own")); });
  };
  EXPECT_THAT(why("part-{rnk}"),
              HasSubstr("section.path = \"part-{rnk}\": unknown placeholder {rnk}; did you "
                        "mean {rank}?"));
  EXPECT_THAT(why("part-{run_name}"), HasSubstr("unknown placeholder {run_name}; there are {rank}, {host}"));
  EXPECT_THAT(why("part-{rank"), HasSubstr("a { has no }"));
  EXPECT_FALSE(has_per_rank_data(section("part-{run_name}", "global"))) << "a name like any other";
}

TEST_F(OwnDataTest, AMissingFileIsNamedAsTheRankSeesIt) {
  const Setting parts = section(folder_.path("part-{rank}-{host}"), "own");
  const auto why = message_of<UserError>([&] { make_per_rank_dataset(parts, 1, {7, "there"}); });
  EXPECT_THAT(why, HasSubstr("part-7-there"));
}

TEST_F(OwnDataTest, AHostsNameIsNoPartOfAProgram) {
  Setting parts = section(folder_.path("part-{rank}-{host}"), "own");
  Setting& named = *parts.find("path");
  const auto why = [&](const std::string& host) {
    return message_of<UserError>([&] { make_per_rank_dataset(parts, 1, {0, host}); });
  };
  EXPECT_THAT(why("$(touch made)"), HasSubstr("part-0-$(touch made)")) << "a path is read by no shell";
  named.path = "section.command";
  EXPECT_THAT(why("$(touch made)"),
              HasSubstr("{host} is $(touch made); of what stands in a command, only letters"));
  EXPECT_NO_THROW(make_per_rank_dataset(parts, 1, {0, "here"}));
}

}  // namespace
}  // namespace tutti
