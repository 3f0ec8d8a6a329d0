#include "sharding/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using enum ShardingStrategy;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ShardingSettingsTest : public testing::Test {
 protected:
  // [sharding] stands on line 1, its keys from line 2 on.
  static Setting recipe(const std::string& keys, const std::vector<std::string>& overrides = {}) {
    return resolve_recipe(parse_recipe("[sharding]\n" + keys +
                                           "\n[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\n"
                                           "[data.train]\nkind = 'synthetic'\nbatch_size = 24\n"
                                           "[train]\nmax_duration = '1ep'\n",
                                       "test.toml", overrides));
  }

  static ShardingSettings settings(const std::string& keys, const std::vector<std::string>& overrides = {}) {
    return ShardingSettings::read(recipe(keys, overrides).at("sharding"));
  }

  static std::string why(const std::string& keys) {
    return message_of<UserError>([&] { settings(keys); });
  }

  // The error of making a job of this number of ranks.
  std::string why_not(const std::string& keys, int world) const {
    return message_of<UserError>([&] {
      make_job(recipe(keys), {.world = world, .run_dir = folder_.path("run"), .makes_folders = false});
    });
  }

  Scratch folder_;
};

TEST_F(ShardingSettingsTest, OffloadWhatIsNamed) {
  const auto none = settings(""),
             both = settings("activation_checkpointing = 2\noffload = ['activations', 'optimizer']");
  EXPECT_FALSE(none.offloads_optimizer || none.offloads_activations);
  EXPECT_TRUE(both.offloads_optimizer && both.offloads_activations);
  EXPECT_THAT(why("offload = ['optimizer', 'gradients']"),
              AllOf(StartsWith("test.toml:2: sharding.offload"), HasSubstr("gradients"),
                    HasSubstr("expected \"optimizer\", \"parameters\" or \"activations\"")));
  const auto parameters = settings("strategy = 'full'\noffload = ['parameters']");
  EXPECT_TRUE(parameters.offloads_parameters && parameters.offloads_optimizer);
  EXPECT_THAT(why("offload = ['parameters']"), HasSubstr("it needs strategy = \"full\" or \"hybrid\""));
  EXPECT_THAT(why("offload = ['activations']"), HasSubstr("it needs sharding.activation_checkpointing"));
}

TEST_F(ShardingSettingsTest, HaveADefaultForEveryKey) {
  const ShardingSettings none = settings("");
  EXPECT_EQ(none.strategy, kNone);
  EXPECT_EQ(none.shard_size, 0);
  EXPECT_THAT(none.units.value, IsEmpty());
  EXPECT_EQ(none.unit_mb, 0);
  EXPECT_TRUE(none.prefetch && none.reshard_after_forward);
  EXPECT_EQ(recipe("").at("sharding").at("strategy").text(), "none");
}

TEST_F(ShardingSettingsTest, StrategiesHaveFsdpsNamesToo) {
  const auto strategy = [](const std::string& name) {
    const std::string size = name == "hybrid" || name == "HYBRID_SHARD" ? "\nshard_size = 2" : "";
    return settings("strategy = '" + name + "'" + size).strategy;
  };
  EXPECT_EQ(strategy("none"), kNone);
  EXPECT_EQ(strategy("NO_SHARD"), kNone);
  EXPECT_EQ(strategy("optimizer"), kOptimizer);
  EXPECT_EQ(strategy("gradients"), kGradients);
  EXPECT_EQ(strategy("SHARD_GRAD_OP"), kGradients);
  EXPECT_EQ(strategy("full"), kFull);
  EXPECT_EQ(strategy("FULL_SHARD"), kFull);
  EXPECT_EQ(strategy("hybrid"), kHybrid);
  EXPECT_EQ(strategy("HYBRID_SHARD"), kHybrid);
  EXPECT_EQ(recipe("strategy = 'FULL_SHARD'").at("sharding").at("strategy").text(), "full");
  EXPECT_THAT(
      why("strategy = 'FUL_SHARD'"),
      AllOf(StartsWith("test.toml:2: sharding.strategy = \"FUL_SHARD\": expected one of none, optimizer"),
            HasSubstr("did you mean \"FULL_SHARD\"?")));
}

TEST_F(ShardingSettingsTest, ASharedCopyIsThatOfAPowerOfTwoRanks) {
  EXPECT_EQ(settings("strategy = 'hybrid'\nshard_size = 8").shard_size, 8);
  EXPECT_THAT(why("strategy = 'hybrid'\nshard_size = 6"),
              StartsWith("test.toml:3: sharding.shard_size = 6: expected a power of two"));
  EXPECT_THAT(why("strategy = 'hybrid'\nshard_size = 1"),
              StartsWith("test.toml:3: sharding.shard_size = 1: expected an integer in [2, "));
  EXPECT_THAT(why("strategy = 'hybrid'"), AllOf(StartsWith("test.toml:2: sharding.strategy = \"hybrid\": "),
                                                HasSubstr("it needs sharding.shard_size")));
  EXPECT_THAT(why("shard_size = 2\nstrategy = 'full'"),
              AllOf(StartsWith("test.toml:2: sharding.shard_size = 2: "),
                    HasSubstr("contradicts sharding.strategy = \"full\" (test.toml:3)")));
}

TEST_F(ShardingSettingsTest, UnitsAreNamedOrSized) {
  EXPECT_THAT(settings("strategy = 'full'\nunits = ['Linear', 'blocks.*']").units.value,
              ElementsAre("Linear", "blocks.*"));
  EXPECT_EQ(settings("strategy = 'full'\nunit_mb = 1.5").unit_mb, 1.5);
  EXPECT_THAT(why("unit_mb = 4\nunits = ['Linear']"),
              AllOf(StartsWith("test.toml:2: sharding.unit_mb = 4"),
                    HasSubstr("excludes sharding.units (test.toml:3)")));
  EXPECT_EQ(settings("units = ['Linear']", {"sharding.unit_mb=4"}).unit_mb, 4);
  EXPECT_THAT(settings("units = ['Linear']", {"sharding.unit_mb=4"}).units.value, IsEmpty());
  EXPECT_THAT(why("units = ['Linear', '']"),
              AllOf(StartsWith("test.toml:2: sharding.units"), HasSubstr("expected a kind of layer")));
  EXPECT_THAT(why("unit_mb = 0"), StartsWith("test.toml:2: sharding.unit_mb = 0"));
}

TEST_F(ShardingSettingsTest, ActivationsAreCheckpointedInUnitsOrLayers) {
  const auto read = [](const std::string& value) { return settings("activation_checkpointing = " + value); };
  EXPECT_FALSE(settings("").checkpoints_activations());
  EXPECT_FALSE(read("false").checkpoints_activations());
  EXPECT_EQ(read("true").checkpoint_every, 1);
  EXPECT_EQ(read("3").checkpoint_every, 3);
  EXPECT_THAT(read("['GptBlock', '*.mlp']").checkpoint_layers, ElementsAre("GptBlock", "*.mlp"));
  EXPECT_TRUE(settings("", {"sharding.activation_checkpointing=true"}).checkpoints_activations());
  for (const char* wrong : {"0", "-1", "1.5", "'true'", "[1]"})
    EXPECT_THAT(why("activation_checkpointing = " + std::string(wrong)),
                AllOf(StartsWith("test.toml:2: sharding.activation_checkpointing"),
                      HasSubstr("expected true, false, a list of texts, or an integer >= 1")))
        << wrong;
  EXPECT_THAT(why("activation_checkpointing = []"), HasSubstr("expected kinds of layers"));
  EXPECT_THAT(why("activation_checkpointing = ['a', '']"), HasSubstr("expected a kind of layer"));
}

TEST_F(ShardingSettingsTest, OnlyGatheredParametersAreFreedAfterForward) {
  EXPECT_FALSE(settings("strategy = 'full'\nreshard_after_forward = false").reshard_after_forward);
  for (const char* strategy : {"none", "optimizer", "gradients"})
    EXPECT_THAT(why("reshard_after_forward = false\nstrategy = '" + std::string(strategy) + "'"),
                AllOf(StartsWith("test.toml:2: sharding.reshard_after_forward = false: "),
                      HasSubstr("sharding.strategy = \"" + std::string(strategy) + "\" (test.toml:3)")));
}

TEST_F(ShardingSettingsTest, GroupsThatShareACopyAreAllOfOneSize) {
  const std::string four = "strategy = 'hybrid'\nshard_size = 4";
  EXPECT_THAT(why_not(four, 6), AllOf(StartsWith("test.toml:3: sharding.shard_size = 4: "),
                                      HasSubstr("expected a divisor of the number of ranks, 6")));
  EXPECT_THAT(why_not(four, 4), AllOf(StartsWith("test.toml:3: sharding.shard_size = 4: "),
                                      HasSubstr("fewer than the number of ranks, 4")));
}

}  // namespace
}  // namespace tutti
