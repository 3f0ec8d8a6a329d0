#include "job/names/deepspeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// [deepspeed] stands on line 1, `data` below [data.train] on line 8 or so, `train` below [train].
std::string recipe_text(const std::string& deepspeed, const std::string& data = "",
                        const std::string& train = "") {
  return "[deepspeed]\n" + deepspeed + "\n[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\n[data.train]\n" +
         "kind = 'synthetic'\n" + data + "\n[train]\nmax_duration = '1ep'\n" + train + "\n";
}

Setting translated(const std::string& deepspeed, const std::string& data = "",
                   const std::string& train = "") {
  return with_deepspeed(parse_recipe(recipe_text(deepspeed, data, train), "test.toml"));
}

Setting resolved(const std::string& deepspeed, const std::string& data = "", const std::string& train = "") {
  return resolve_recipe(parse_recipe(recipe_text(deepspeed, data, train), "test.toml"));
}

std::string why(const std::string& deepspeed, const std::string& data = "", const std::string& train = "") {
  return message_of<UserError>([&] { resolved(deepspeed, data, train); });
}

// The error on this number of ranks, or "".
std::string rule(const Setting& recipe, int64_t global_batch, int world) {
  try {
    require_deepspeed_rule(recipe, global_batch, world);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(DeepSpeed, WholeBatchIsTheRecipes) {
  const Setting recipe = resolved("train_batch_size = 96");
  EXPECT_EQ(recipe.at("data").at("train").at("batch_size").integer(), 96);
  EXPECT_FALSE(recipe.at("train").has("grad_accum"));
}

TEST(DeepSpeed, MicroBatchAndAccumulationAreTheRecipes) {
  const Setting sized = resolved("train_batch_size = 96\ntrain_micro_batch_size_per_gpu = 16");
  EXPECT_EQ(sized.at("train").at("device_train_microbatch_size").integer(), 16);
  EXPECT_EQ(rule(sized, 96, 2), "");
  EXPECT_THAT(rule(sized, 80, 2),
              HasSubstr("data.train.device_batch_size says 40 samples on each of 2 ranks"));

  const Setting counted = resolved("train_micro_batch_size_per_gpu = 16\ngradient_accumulation_steps = 3");
  EXPECT_EQ(counted.at("data").at("train").at("device_batch_size").integer(), 48);
  EXPECT_EQ(counted.at("train").at("grad_accum").integer(), 3);
  EXPECT_EQ(rule(counted, 96, 2), "");

  const Setting alone = resolved("train_micro_batch_size_per_gpu = 16");
  EXPECT_EQ(alone.at("data").at("train").at("device_batch_size").integer(), 16);
}

TEST(DeepSpeed, AmpIsFp16ByAnotherName) {
  EXPECT_NO_THROW(resolved("fp16 = {enabled = true}", "batch_size = 4", "precision = 'amp'"));
  EXPECT_THAT(why("fp16 = {enabled = false}", "batch_size = 4", "precision = 'amp'"),
              HasSubstr("train.precision = \"amp\""));
}

TEST(DeepSpeed, AccumulationAndSizeOfMicrobatchesMayBothBeGiven) {
  const Setting both =
      resolved("gradient_accumulation_steps = 6", "batch_size = 96", "device_train_microbatch_size = 16");
  EXPECT_EQ(rule(both, 96, 1), "");
  EXPECT_THAT(rule(both, 96, 2), HasSubstr("train.device_train_microbatch_size = 16"));
}

TEST(DeepSpeed, KeysLeftOutKeepTheRecipesValues) {
  const Setting empty = resolved("", "batch_size = 12", "grad_accum = 2");
  EXPECT_EQ(empty.at("data").at("train").at("batch_size").integer(), 12);
  EXPECT_EQ(empty.at("train").at("grad_accum").integer(), 2);
  const Setting parts = resolved("gradient_accumulation_steps = 4", "batch_size = 12");
  EXPECT_EQ(parts.at("train").at("grad_accum").integer(), 4);
  EXPECT_EQ(resolved("train_micro_batch_size_per_gpu = 3", "device_batch_size = 12")
                .at("train")
                .at("device_train_microbatch_size")
                .integer(),
            3);
  EXPECT_EQ(resolved("train_micro_batch_size_per_gpu = 3", "", "grad_accum = 2")
                .at("data")
                .at("train")
                .at("device_batch_size")
                .integer(),
            6);
}

TEST(DeepSpeed, BatchesThatDoNotMultiplyAreAnError) {
  const Setting all =
      resolved("train_batch_size = 96\ntrain_micro_batch_size_per_gpu = 16\ngradient_accumulation_steps = 3");
  EXPECT_EQ(rule(all, 96, 2), "");
  EXPECT_THAT(rule(all, 96, 1),
              AllOf(StartsWith("test.toml:3: deepspeed.train_micro_batch_size_per_gpu = 16: "),
                    HasSubstr("96 samples on each of 1 ranks; accumulation is train.grad_accum = 3")));
  EXPECT_THAT(rule(resolved("train_batch_size = 96\ntrain_micro_batch_size_per_gpu = 36"), 96, 2),
              HasSubstr("micro batch x accumulation x ranks must be the batch"));
  EXPECT_THAT(rule(resolved("train_batch_size = 96\ngradient_accumulation_steps = 5"), 96, 2),
              StartsWith("test.toml:3: deepspeed.gradient_accumulation_steps = 5: expected a divisor"));
  EXPECT_THAT(rule(all, 96, 5), AllOf(StartsWith("test.toml:2: deepspeed.train_batch_size = 96: "),
                                      HasSubstr("no multiple of the number of ranks, 5")));
}

TEST(DeepSpeed, ContradictionsNameBoth) {
  EXPECT_THAT(why("train_batch_size = 96", "batch_size = 97"),
              AllOf(StartsWith("test.toml:2: deepspeed.train_batch_size = 96: "),
                    HasSubstr("data.train.batch_size = 97 (test.toml:9) says otherwise")));
  EXPECT_THAT(why("gradient_accumulation_steps = 2", "batch_size = 8", "grad_accum = 'auto'"),
              HasSubstr("train.grad_accum = \"auto\""));
  EXPECT_THAT(why("train_micro_batch_size_per_gpu = 2", "batch_size = 8", "grad_accum = 'auto'"),
              HasSubstr("train.grad_accum = \"auto\""));
  EXPECT_THAT(why("fp16 = {enabled = true}", "batch_size = 8", "precision = 'fp32'"),
              AllOf(HasSubstr("deepspeed.fp16.enabled = true"), HasSubstr("train.precision = \"fp32\"")));
  EXPECT_THAT(
      why("bf16 = {enabled = false}", "batch_size = 8", "precision = 'amp_bf16'"),
      AllOf(HasSubstr("deepspeed.bf16.enabled = false"), HasSubstr("train.precision = \"amp_bf16\"")));
  EXPECT_THAT(why("fp16 = {enabled = true}\nbf16 = {enabled = true}", "batch_size = 8"),
              AllOf(HasSubstr("deepspeed.fp16.enabled = true"), HasSubstr("deepspeed.bf16.enabled = true")));
}

TEST(DeepSpeed, AnyOtherKeyIsAnError) {
  EXPECT_THAT(why("zero_optimisation = {stage = 3}", "batch_size = 8"),
              StartsWith("test.toml:2: [deepspeed.zero_optimisation]: unknown key"));
  EXPECT_THAT(why("zero_optimization = {stages = 3}", "batch_size = 8"),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.stages = 3"),
                    HasSubstr("did you mean stage?")));
  EXPECT_THAT(why("fp16 = {enable = true}", "batch_size = 8"),
              AllOf(HasSubstr("deepspeed.fp16.enable = true"), HasSubstr("did you mean enabled?")));
  EXPECT_THAT(why("train_batch_size = 'auto'"), HasSubstr("expected an integer"));
}

// All keys of DeepSpeed's documented configuration that tutti does not translate.
TEST(DeepSpeed, KeysThatStandElsewhereSayWhere) {
  for (const char* key : {"optimizer",
                          "scheduler",
                          "communication_data_type",
                          "prescale_gradients",
                          "gradient_predivide_factor",
                          "sparse_gradients",
                          "wall_clock_breakdown",
                          "memory_breakdown",
                          "flops_profiler",
                          "comms_logger",
                          "dump_state",
                          "amp",
                          "data_types",
                          "tensorboard",
                          "wandb",
                          "csv_monitor",
                          "comet",
                          "checkpoint",
                          "autotuning",
                          "elasticity",
                          "curriculum_learning",
                          "data_efficiency",
                          "aio",
                          "sparse_attention",
                          "compression_training",
                          "zero_allow_untested_optimizer",
                          "zero_force_ds_cpu_optimizer"})
    EXPECT_THAT(why(key + std::string(" = true"), "batch_size = 8"), HasSubstr("not carried over: ")) << key;
  for (const char* key : {"loss_scale_window", "hysteresis", "consecutive_hysteresis", "min_loss_scale",
                          "auto_cast", "fp16_master_weights_and_grads"})
    EXPECT_THAT(why("fp16 = {enabled = true, " + std::string(key) + " = 1}", "batch_size = 8"),
                HasSubstr("not carried over: "))
        << key;
  EXPECT_THAT(why("optimizer = {type = 'Adam'}", "batch_size = 8"), HasSubstr("[optimizer]"));
}

TEST(DeepSpeed, HalfPrecisionIsTheRecipes) {
  const auto train = [](const std::string& deepspeed) { return translated(deepspeed).at("train"); };
  EXPECT_EQ(train("fp16 = {enabled = true}").at("precision").text(), "amp_fp16");
  EXPECT_EQ(train("bf16 = {enabled = true}").at("precision").text(), "amp_bf16");
  EXPECT_EQ(train("fp16 = {}").find("precision"), nullptr);
  EXPECT_EQ(train("bf16 = {enabled = false}").find("precision"), nullptr);
}

TEST(DeepSpeed, TheScaleOfLossesIsTheRecipes) {
  const auto scaled = [](const std::string& more) {
    const Setting recipe = translated("fp16 = {enabled = true" + more + "}");
    return recipe.find("precision") ? recipe.at("precision") : Setting(Setting::Table{}, "", {});
  };
  EXPECT_TRUE(scaled("").table().empty());
  EXPECT_EQ(scaled(", initial_scale_power = 10").at("init_scale").number(), 1024.0);
  const Setting fixed = scaled(", loss_scale = 128");
  EXPECT_EQ(fixed.at("init_scale").number(), 128.0);
  EXPECT_EQ(fixed.at("growth_factor").number(), 1.0);
  EXPECT_EQ(fixed.at("backoff_factor").number(), 1.0);
}

TEST(DeepSpeed, AScaleWithoutAWordOnFp16IsAnError) {
  for (const char* key : {"loss_scale", "initial_scale_power"}) {
    const std::string scale = std::string(key) + " = 4";
    EXPECT_THAT(why("fp16 = {" + scale + "}", "batch_size = 8"),
                AllOf(StartsWith("test.toml:2: deepspeed.fp16." + std::string(key) + " = 4"),
                      HasSubstr("fp16 is not enabled")));
    const Setting off = resolved("fp16 = {enabled = false, " + scale + "}", "batch_size = 8");
    EXPECT_EQ(off.at("train").at("precision").text(), "fp32") << key;
  }
}

TEST(DeepSpeed, ItsScaleIsTakenWhereTheRecipeSaysNothingElse) {
  const std::string fp16 = "fp16 = {enabled = true, initial_scale_power = 10}";
  const Setting recipe = resolved(fp16, "batch_size = 8");
  EXPECT_EQ(recipe.at("train").at("precision").text(), "amp_fp16");
  EXPECT_EQ(recipe.at("precision").at("init_scale").number(), 1024.0);
  EXPECT_EQ(resolve_recipe(parse_recipe(write_recipe(recipe), "/recipe.toml")).toml(), recipe.toml());
  EXPECT_THAT(
      why(fp16, "batch_size = 8", "[precision]\ninit_scale = 2"),
      AllOf(HasSubstr("deepspeed.fp16.initial_scale_power = 10"), HasSubstr("precision.init_scale = 2")));
}

TEST(DeepSpeed, ClippingIsAnAlgorithmOfTheRecipe) {
  EXPECT_TRUE(resolved("gradient_clipping = 0.0", "batch_size = 8").at("algorithms").array().empty());
  const Setting recipe = resolved("gradient_clipping = 1.5", "batch_size = 8");
  ASSERT_EQ(recipe.at("algorithms").array().size(), 1u);
  const Setting& clipping = recipe.at("algorithms").array()[0];
  EXPECT_EQ(clipping.at("kind").text(), "gradient_clipping");
  EXPECT_EQ(clipping.at("clipping_type").text(), "norm");
  EXPECT_EQ(clipping.at("clipping_threshold").number(), 1.5);
  EXPECT_EQ(resolve_recipe(parse_recipe(write_recipe(recipe), "/recipe.toml")).toml(), recipe.toml());
}

TEST(DeepSpeed, AWrittenDefaultStillContradictsTheRecipe) {
  EXPECT_THAT(
      why("gradient_clipping = 0.0", "batch_size = 8",
          "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = 2"),
      AllOf(HasSubstr("deepspeed.gradient_clipping = 0"), HasSubstr("algorithms.0.kind")));
  EXPECT_THAT(
      why("fp16 = {enabled = true, initial_scale_power = 16}", "batch_size = 8",
          "[precision]\ninit_scale = 2"),
      AllOf(HasSubstr("deepspeed.fp16.initial_scale_power = 16"), HasSubstr("precision.init_scale = 2")));
}

TEST(DeepSpeed, AccumulationIsAsComposersWordSaysOrIsRefused) {
  EXPECT_THAT(
      why("gradient_accumulation_steps = 4", "batch_size = 8", "device_train_microbatch_size = 'auto'"),
      AllOf(HasSubstr("deepspeed.gradient_accumulation_steps = 4"),
            HasSubstr("train.grad_accum = \"auto\"")));
}

TEST(DeepSpeed, ClippingMayNotContradictTheRecipes) {
  const std::string clipping = "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = ";
  const std::string seconds[] = {clipping + "'norm'\nclipping_threshold = 2", clipping + "'value'\n"};
  EXPECT_THAT(why("gradient_clipping = 1.5", "batch_size = 8", seconds[0]),
              AllOf(StartsWith("test.toml:2: deepspeed.gradient_clipping = 1.5: "),
                    HasSubstr("algorithms.0.clipping_threshold = 2")));
  EXPECT_THAT(why("gradient_clipping = 1.5", "batch_size = 8", seconds[1]),
              HasSubstr("algorithms.0.clipping_type = \"value\""));
  const Setting same = resolved("gradient_clipping = 2", "batch_size = 8", seconds[0]);
  EXPECT_EQ(same.at("algorithms").array().size(), 1u);
}

TEST(DeepSpeed, StagesOfZeroAreStrategies) {
  const char* strategies[] = {"none", "optimizer", "gradients", "full"};
  for (int stage = 0; stage < 4; ++stage) {
    const Setting recipe =
        resolved("zero_optimization = {stage = " + std::to_string(stage) + "}", "batch_size = 8");
    EXPECT_EQ(recipe.at("sharding").at("strategy").text(), strategies[stage]);
    EXPECT_EQ(resolve_recipe(parse_recipe(write_recipe(recipe), "/recipe.toml")).toml(), recipe.toml());
  }
  EXPECT_EQ(translated("zero_optimization = {}").find("sharding"), nullptr);
  EXPECT_THAT(
      why("zero_optimization = {stage = 4}", "batch_size = 8"),
      StartsWith("test.toml:2: deepspeed.zero_optimization.stage = 4: expected an integer in [0, 3]"));
}

TEST(DeepSpeed, AStageMayNotContradictTheRecipes) {
  const std::string third = "zero_optimization = {stage = 3}";
  EXPECT_THAT(why(third, "batch_size = 8", "[sharding]\nstrategy = 'SHARD_GRAD_OP'"),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.stage = 3: "),
                    HasSubstr("sharding.strategy = \"SHARD_GRAD_OP\" (test.toml:13) says otherwise")));
  EXPECT_THAT(why("zero_optimization = {stage = 0}", "batch_size = 8", "[sharding]\nstrategy = 'full'"),
              AllOf(HasSubstr("deepspeed.zero_optimization.stage = 0"), HasSubstr("sharding.strategy")));
  EXPECT_THAT(why("zero_optimization = {stage = 1}", "batch_size = 8", "[sharding]\nshard_size = 2"),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.stage = 1: "),
                    HasSubstr("sharding.shard_size = 2 (test.toml:13) says otherwise")));
  const std::string keeps = "[sharding]\nreshard_after_forward = false";
  EXPECT_THAT(why("zero_optimization = {stage = 2}", "batch_size = 8", keeps),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.stage = 2: "),
                    HasSubstr("sharding.reshard_after_forward = false (test.toml:13) says otherwise")));
  EXPECT_EQ(resolved(third, "batch_size = 8", keeps).at("sharding").at("strategy").text(), "full");
  const Setting same = resolved(third, "batch_size = 8", "[sharding]\nstrategy = 'FULL_SHARD'");
  EXPECT_EQ(same.at("sharding").at("strategy").text(), "full");
}

TEST(DeepSpeed, BucketsOfZeroCountNumbers) {
  const auto bucket_mb = [](const std::string& more, const std::string& precision = "") {
    const Setting recipe =
        resolved("zero_optimization = {reduce_bucket_size = " + more + "}", "batch_size = 8", precision);
    EXPECT_EQ(resolve_recipe(parse_recipe(write_recipe(recipe), "/recipe.toml")).toml(), recipe.toml());
    return recipe.at("collectives").at("bucket_mb").number();
  };
  EXPECT_EQ(bucket_mb("1048576"), 4);
  EXPECT_EQ(bucket_mb("5e8"), 5e8 * 4 / 1048576);
  EXPECT_EQ(bucket_mb("1048576", "precision = 'amp_bf16'"), 4);
  EXPECT_EQ(bucket_mb("1048576", "precision = 'amp_bf16'\n[precision]\nreduce_dtype = 'bf16'"), 2);
  EXPECT_EQ(bucket_mb("1048576", "precision = 'amp_bf16'\n[precision]\nparam_dtype = 'bf16'"), 2);
  EXPECT_EQ(bucket_mb("1048576",
                      "precision = 'amp_bf16'\n[precision]\nparam_dtype = 'bf16'\n"
                      "reduce_dtype = 'fp32'"),
            4);
  EXPECT_THAT(why("zero_optimization = {reduce_bucket_size = 1048576}", "batch_size = 8",
                  "[collectives]\nbucket_mb = 8"),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.reduce_bucket_size = 1048576"),
                    HasSubstr("collectives.bucket_mb = 8 (test.toml:13) says otherwise")));
}

TEST(DeepSpeed, BucketsOfZeroHaveNoEffectOnUnitsWhichIsSaid) {
  const auto advice = [](const std::string& zero, const std::string& more = "") {
    return deepspeed_advice(resolved("zero_optimization = {" + zero + "}", "batch_size = 8", more));
  };
  for (const char* stage : {"2", "3"})
    EXPECT_THAT(advice(std::string("reduce_bucket_size = 1048576, stage = ") + stage),
                AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.reduce_bucket_size = 1048576: "),
                      HasSubstr("no effect"), HasSubstr("sharding.units")));
  EXPECT_THAT(advice("reduce_bucket_size = 1048576", "[sharding]\nstrategy = 'full'"), HasSubstr("\"full\""));
  EXPECT_EQ(advice("reduce_bucket_size = 1048576, stage = 1"), "");
  EXPECT_EQ(advice("stage = 3"), "");
  EXPECT_EQ(deepspeed_advice(
                resolve_recipe(parse_recipe(recipe_text("", "batch_size = 8").substr(12), "test.toml"))),
            "");
}

TEST(DeepSpeed, OtherKeysOfZeroAreWhatTuttiDoesOrSayWhyNot) {
  const auto zero = [](const std::string& key) { return "zero_optimization = {" + key + "}"; };
  for (const char* key : {"overlap_comm", "contiguous_gradients", "reduce_scatter"}) {
    EXPECT_NO_THROW(resolved(zero(key + std::string(" = true")), "batch_size = 8")) << key;
    EXPECT_THAT(
        why(zero(key + std::string(" = false")), "batch_size = 8"),
        HasSubstr("deepspeed.zero_optimization." + std::string(key) + " = false: expected one of true"));
  }
  EXPECT_THAT(why(zero("allgather_bucket_size = 5e8"), "batch_size = 8"),
              AllOf(StartsWith("test.toml:2: deepspeed.zero_optimization.allgather_bucket_size"),
                    HasSubstr("not carried over: "), HasSubstr("[sharding] units")));
}

TEST(DeepSpeed, ActivationsAreCheckpointedAsTheRecipesAre) {
  const auto own = [](const std::string& more) {
    return resolved("activation_checkpointing = {partition_activations = false, profile = false}",
                    "batch_size = 8", more)
        .at("sharding")
        .at("activation_checkpointing")
        .toml();
  };
  EXPECT_EQ(own(""), "true");
  EXPECT_EQ(own("[sharding]\nactivation_checkpointing = true"), "true");
  EXPECT_EQ(own("[sharding]\nactivation_checkpointing = 2"), "2");
  EXPECT_EQ(own("[sharding]\nactivation_checkpointing = ['Linear']"), "[\"Linear\"]");
  EXPECT_EQ(translated("train_batch_size = 96").find("sharding"), nullptr);
  const std::string no = "[sharding]\nactivation_checkpointing = false";
  EXPECT_THAT(why("activation_checkpointing = {}", "batch_size = 8", no),
              AllOf(StartsWith("test.toml:2: [deepspeed.activation_checkpointing]: "),
                    HasSubstr("sharding.activation_checkpointing = false (test.toml:13) says otherwise")));
  EXPECT_THAT(why("activation_checkpointing = {number_checkpoints = 4}", "batch_size = 8"),
              AllOf(HasSubstr("not carried over: "), HasSubstr("[sharding] activation_checkpointing = n")));
}

TEST(DeepSpeed, OffloadToTheCpuIsTheRecipes) {
  const auto offload = [](const std::string& keys, const std::string& more = "") {
    return resolved(keys, "batch_size = 8", more).at("sharding").at("offload").toml();
  };
  const std::string optimizer =
      "zero_optimization = {offload_optimizer = {device = 'cpu', pin_memory = true}}";
  const std::string activations = "activation_checkpointing = {cpu_checkpointing = true}";
  EXPECT_EQ(offload(optimizer), "[\"optimizer\"]");
  EXPECT_EQ(offload(activations), "[\"activations\"]");
  EXPECT_EQ(offload(optimizer + "\n" + activations), "[\"optimizer\", \"activations\"]");
  EXPECT_EQ(offload(optimizer, "[sharding]\noffload = ['optimizer']"), "[\"optimizer\"]");
  EXPECT_EQ(offload("zero_optimization = {stage = 3, offload_param = {device = 'cpu'}}"), "[\"parameters\"]");
  EXPECT_EQ(resolved("zero_optimization = {offload_optimizer = {device = 'none'}}", "batch_size = 8")
                .at("sharding")
                .has("offload"),
            false);
  EXPECT_THAT(why("zero_optimization = {offload_optimizer = {device = 'nvme'}}", "batch_size = 8"),
              HasSubstr("expected \"cpu\" or \"none\""));
  EXPECT_THAT(
      why("zero_optimization = {offload_optimizer = {device = 'cpu', ratio = 0.5}}", "batch_size = 8"),
      HasSubstr("not carried over: all of it is offloaded"));
  EXPECT_THAT(why("zero_optimization = {offload_optimizer = true}", "batch_size = 8"),
              HasSubstr("expected {device = \"cpu\"}"));
}

TEST(DeepSpeed, StepsPerPrintAreThoseOfProgress) {
  EXPECT_EQ(resolved("steps_per_print = 10", "batch_size = 8").at("train").at("progress_interval").text(),
            "10ba");
}

// The recipe that a run writes can be run again.
TEST(DeepSpeed, ResolvingTwiceChangesNothing) {
  for (const char* text : {"train_batch_size = 96\ntrain_micro_batch_size_per_gpu = 16\nsteps_per_print = 5",
                           "train_micro_batch_size_per_gpu = 16\ngradient_accumulation_steps = 3",
                           "train_micro_batch_size_per_gpu = 16"}) {
    const Setting once = resolved(text);
    EXPECT_EQ(resolve_recipe(parse_recipe(write_recipe(once), "/recipe.toml")).toml(), once.toml()) << text;
  }
}

}  // namespace
}  // namespace tutti
