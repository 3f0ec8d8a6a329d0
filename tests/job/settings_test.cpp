#include "job/settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "job/job.h"
#include "job/make_job.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// No value is the default.
constexpr const char* kRecipe = R"(
seed = 1
run_name = "one"
[model]
kind = "mlp"
[data.train]
kind = "synthetic"
batch_size = 8
shuffle = true
drop_last = true
prefetch = 5
train_subset_num_batches = 6
[data.eval]
kind = "synthetic"
label = "other"
subset_num_batches = 2
device_eval_microbatch_size = 3
[optimizer]
kind = "sgd"
[train]
max_duration = "2iter"
iteration_length = "3ep"
scale_schedule_ratio = 0.5
eval_interval = "1iter"
grad_accum = [[0, 1], [7, 2]]
grad_accum_grow_interval = "9sp"
progress_bar = false
progress_interval = "4ba"
hang_timeout = "7sec"
deterministic_mode = true
log_traces = true
auto_log_hparams = true
precision = "amp_bf16"
[precision]
reduce_dtype = "bf16"
init_scale = 8
growth_factor = 3
backoff_factor = 0.25
growth_interval = 11
[compat]
composer = true
[device]
threads = 2
tf32 = true
memory_budget_mb = [1000, 2000]
[collectives]
backend = "local"
bucket_mb = 0.5
[sharding]
units = ["Linear"]
prefetch = false
[checkpoint]
interval = "10ba"
save_filename = "ba{batch}"
save_latest_filename = "newest"
save_weights_only = true
save_ignore_keys = ["optimizers/*"]
keep = 4
[journal]
level = "control"
keep = 12
)";

class SettingsTest : public testing::Test {
 protected:
  Job job(const std::string& recipe = kRecipe) const {
    return make_job(recipe_of(recipe), {.world = 2, .run_dir = folder_.path("run"), .makes_folders = false});
  }

  Scratch folder_;
};

TEST_F(SettingsTest, OfTraining) {
  const Job made = job();
  const TrainSettings& train = made.settings.train;
  EXPECT_EQ(train.max_duration, Time(6, TimeUnit::kEpoch));
  EXPECT_EQ(train.scale_schedule_ratio, 0.5);
  EXPECT_EQ(train.planned_duration(), Time(3, TimeUnit::kEpoch));
  EXPECT_EQ(train.iteration_length, 3);
  EXPECT_EQ(train.eval_interval, Time(3, TimeUnit::kEpoch));
  EXPECT_EQ(train.accumulation.steps, (std::vector<std::pair<int64_t, int>>{{0, 1}, {7, 2}}));
  EXPECT_EQ(train.accumulation.grow_interval, Time(9, TimeUnit::kSample));
  EXPECT_EQ(train.hang_timeout, std::chrono::seconds(7));
  EXPECT_TRUE(train.deterministic_mode && train.log_traces && train.auto_log_hparams && train.composer);
  EXPECT_FALSE(train.progress_bar);
  EXPECT_EQ(train.progress_interval, 4);
  const LossScaling& scaling = made.settings.precision.loss_scaling;
  EXPECT_EQ(made.settings.precision.autocast, at::kBFloat16);
  EXPECT_EQ(made.settings.precision.reduce_dtype, at::kBFloat16);
  EXPECT_EQ(std::tie(scaling.init_scale, scaling.growth_factor, scaling.backoff_factor),
            std::make_tuple(8.0, 3.0, 0.25));
  EXPECT_EQ(scaling.growth_interval, 11);
}

TEST_F(SettingsTest, OfData) {
  const Job made = job();
  const DataSettings& data = made.settings.train_data;
  EXPECT_TRUE(data.shuffle && data.drop_last);
  EXPECT_EQ(data.prefetch, 5);
  EXPECT_EQ(data.subset_num_batches, 6);
  EXPECT_EQ(made.train_sampler(0).batches(), 6);
  const Evaluator& evaluator = made.evaluators.at(0);
  EXPECT_EQ(evaluator.label, "other");
  EXPECT_EQ(evaluator.interval, Time(3, TimeUnit::kEpoch));
  EXPECT_EQ(evaluator.microbatch, 3);
  EXPECT_EQ(evaluator.batches, 2);
}

TEST_F(SettingsTest, OfTheRun) {
  const RunSettings settings = job().settings;
  EXPECT_EQ(settings.run_name, "one");
  EXPECT_EQ(settings.checkpoint.interval, Time(10, TimeUnit::kBatch));
  EXPECT_EQ(settings.checkpoint.set.latest, "newest");
  EXPECT_TRUE(settings.checkpoint.set.names.fits("ba3"));
  EXPECT_TRUE(settings.checkpoint.save.weights_only);
  EXPECT_TRUE(settings.checkpoint.save.ignored.fit("optimizers/SGD/x"));
  EXPECT_EQ(settings.checkpoint.keep, 4);
  EXPECT_EQ(settings.collectives.backend, Backend::kLocal);
  EXPECT_EQ(settings.collectives.bucket_bytes(), 1 << 19);
  EXPECT_EQ(settings.sharding.units, std::vector<std::string>{"Linear"});
  EXPECT_FALSE(settings.sharding.prefetch);
  EXPECT_EQ(settings.device.threads, 2);
  EXPECT_TRUE(settings.device.tf32);
  EXPECT_EQ(settings.device.memory_budget(1), 2'000'000'000);
  EXPECT_EQ(settings.journal.level, JournalLevel::kControl);
  EXPECT_EQ(settings.journal.keep, 12);
}

// Else a checkpoint would replace the best one.
TEST_F(SettingsTest, BesideTheBestCheckpointsNamesAreOfOneStepEach) {
  const auto with_name = [this](const std::string& name, const std::string& best) {
    std::string recipe = kRecipe;
    const std::string key = "save_filename = \"ba{batch}\"";
    return job(recipe.replace(recipe.find(key), key.size(), best + "save_filename = \"" + name + "\""));
  };
  const std::string best = "best = {metric = \"a\"}\n";
  for (const char* name : {"b{batch}", "s{sample}", "{epoch}-{batch_in_epoch}", "{sample_in_epoch}of{epoch}",
                           "{epoch}{batch}", "{epoch}{batch_in_epoch}-{sample}"})
    EXPECT_TRUE(with_name(name, best).settings.checkpoint.best) << name;
  for (const char* name :
       {"one", "{run_name}", "ep{epoch}", "{token}", "{epoch}-{token_in_epoch}", "{total_wct}",
        "{epoch}-{world_size}", "{epoch}{batch_in_epoch}", "{sample_in_epoch}0{epoch}",
        "{epoch}{world_size}-{batch_in_epoch}", "{batch}{batch_in_epoch}"}) {
    const std::string told = message_of<UserError>([&] { with_name(name, best); });
    EXPECT_THAT(told, StartsWith("test.toml:55: checkpoint.save_filename = \"" + std::string(name) +
                                 "\": checkpoint.best (test.toml:54)"));
    EXPECT_THAT(told, HasSubstr("add {batch}"));
    with_name(name, "");
  }
  EXPECT_THAT(message_of<UserError>([&] { with_name("best", best); }),
              HasSubstr("save_filename = \"best\": it is the name of the link to the best checkpoint"));
  with_name("best", "");
}

// {token} stands still for models that count no tokens.
TEST_F(SettingsTest, BesideTheBestCheckpointsTokensNameTheStepsOfALanguageModel) {
  const auto with_name = [this](const std::string& name) {
    return job(
        "[model]\nkind = \"gpt\"\nvocab_size = 256\nn_positions = 8\nn_embd = 8\nn_head = 1\nn_layer = 1\n"
        "[data.train]\nkind = \"synthetic\"\nbatch_size = 8\nshape = [8]\ntargets = \"sequence\"\n"
        "[optimizer]\nkind = \"sgd\"\n[train]\nmax_duration = \"1ep\"\n[checkpoint]\nbest = {metric = "
        "\"a\"}\n"
        "save_filename = \"" +
        name + "\"\n");
  };
  for (const char* name : {"{token}", "{epoch}-{token_in_epoch}"})
    EXPECT_TRUE(with_name(name).settings.checkpoint.best) << name;
  EXPECT_THAT(message_of<UserError>([&] { with_name("{token_in_epoch}-{world_size}{run_name}"); }),
              HasSubstr("add {batch}"));
  EXPECT_THAT(message_of<UserError>([&] { with_name("{epoch}{token_in_epoch}"); }), HasSubstr("add {batch}"));
}

TEST_F(SettingsTest, OfKernelsAreThoseOfLibtorch) {
  RunSettings settings = job().settings;
  const at::Context& kernels = at::globalContext();
  const int threads = at::get_num_threads();
  for (const bool on : {true, false}) {
    settings.device.tf32 = settings.train.deterministic_mode = on;
    begin_process(settings);
    EXPECT_EQ(kernels.allowTF32CuBLAS(), on);
    EXPECT_EQ(kernels.allowTF32CuDNN(), on);
    EXPECT_EQ(kernels.deterministicAlgorithms(), on);
    EXPECT_EQ(kernels.deterministicCuDNN(), on);
    EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
    EXPECT_EQ(at::get_num_threads(), 2);
  }
  at::set_num_threads(threads);
}

// Recipes of earlier runs have all defaults of their version.
TEST_F(SettingsTest, TheReductionOfEarlierVersionsMayStandInARecipe) {
  std::string recipe = kRecipe;
  if (recipe.find("[collectives]") == recipe.npos) recipe += "[collectives]\n";
  const auto with = [&](const std::string& reduction) {
    std::string written = recipe;
    return written.insert(written.find("[collectives]\n") + 14, "reduction = '" + reduction + "'\n");
  };
  EXPECT_FALSE(job(with("ordered")).recipe.at("collectives").find("reduction"));
  EXPECT_THAT(message_of<UserError>([&] { job(with("native")); }),
              HasSubstr("collectives.reduction = \"native\": sums are always in the order of the ranks now"));
  EXPECT_THAT(message_of<UserError>([&] { job(with("any")); }), HasSubstr("unknown key"));
}

TEST_F(SettingsTest, AutomaticAccumulationHasNoNumbers) {
  std::string recipe = kRecipe;
  const std::string numbers = "[[0, 1], [7, 2]]";
  recipe.replace(recipe.find(numbers), numbers.size(), "\"auto\"");
  EXPECT_TRUE(job(recipe).settings.train.accumulation.automatic());
}

}  // namespace
}  // namespace tutti
