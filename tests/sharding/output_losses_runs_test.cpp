// A program with several outputs, each with a loss, trains alike on any number of ranks and microbatches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "commands/predict.h"
#include "io/hdf5/hdf5.h"
#include "io/hdf5/hdf5_writer.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

// The last batch of an epoch has 300 pairs of 400, that of an evaluation 46 of 77.
const std::string kPairs = R"(seed = 5
[model]
kind = 'exported'
path = ')" TUTTI_SOURCE_DIR R"(/examples/data/pairs_net.pt2'
[[model.losses]]
output = 'larger'
[[model.losses]]
output = 'difference'
loss = 'smooth_l1'
weight = 4.0
[data.train]
kind = 'hdf5'
path = ')" TUTTI_SOURCE_DIR R"(/examples/data/pairs.h5'
group = 'train'
batch_size = 400
[data.eval]
kind = 'hdf5'
path = ')" TUTTI_SOURCE_DIR R"(/examples/data/pairs.h5'
group = 'test'
batch_size = 77
[[data.eval.metrics]]
kind = 'MulticlassAccuracy'
[[data.eval.metrics]]
kind = 'MeanAbsoluteError'
output = 'difference'
[optimizer]
kind = 'adamw'
lr = 0.01
[train]
)";

using Columns = std::map<std::string, std::vector<double>>;

// The numbers of each name of losses and metrics.
Columns columns_of(const std::string& metrics) {
  static const std::regex kNumber("\"(loss[a-z/]*|metrics/[A-Za-z/]*)\": ([0-9.e+-]+)");
  Columns columns;
  for (std::sregex_iterator found(metrics.begin(), metrics.end(), kNumber), end; found != end; ++found)
    columns[(*found)[1]].push_back(std::stod((*found)[2]));
  return columns;
}

Columns trained_columns(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return columns_of(ShardedJob{recipe, folder.path()}.run(sharded).metrics);
}

void expect_near(const Columns& found, const Columns& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, numbers] : wanted) {
    ASSERT_EQ(found.at(name).size(), numbers.size()) << name;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(found.at(name)[i], numbers[i], 2e-4 * numbers[i]) << name << ' ' << i;
  }
}

TEST(OutputLossesRun, LogTheirSumAndEachPartByName) {
  const Columns found = trained_columns(kPairs + "max_duration = '5ep'\n", {"none", 1});
  const auto expect_sum = [&](const std::string& sum, const std::string& part, std::size_t numbers) {
    const auto &sums = found.at(sum), &larger = found.at(part + "/larger"),
               &difference = found.at(part + "/difference");
    ASSERT_EQ(sums.size(), numbers);
    ASSERT_EQ(larger.size(), numbers);
    for (std::size_t i = 0; i < numbers; ++i)
      EXPECT_NEAR(sums[i], larger[i] + 4.0 * difference[i], 1e-5) << sum << ' ' << i;
    EXPECT_LT(larger.back(), 0.8 * larger.front()) << sum;
  };
  expect_sum("loss", "loss/train", 20);
  expect_sum("metrics/eval/loss", "metrics/eval/loss", 5);
  EXPECT_GT(found.at("metrics/eval/MulticlassAccuracy").back(), 0.6);
  EXPECT_LT(found.at("metrics/eval/MeanAbsoluteError").back(), 0.26);
}

TEST(OutputLossesRun, AreThoseOfOneRankInOnePart) {
  const std::string recipe = kPairs + "max_duration = '3ep'\n";
  const Columns whole = trained_columns(recipe, {"none", 1});
  expect_near(trained_columns(recipe, {"none", 2}), whole);
  expect_near(trained_columns(recipe + "grad_accum = 4\n", {"none", 1}), whole);
  expect_near(trained_columns(recipe + "grad_accum = 4\n", {"full", 2}), whole);
}

TEST(OutputLossesRun, PredictWritesAllOutputsByName) {
  const Scratch folder;
  const std::string recipe = kPairs + "max_duration = '1ba'\n", out = folder.path("predictions.h5");
  ShardedJob{recipe, folder.path("run")}.run({"none", 1});
  predict_text(recipe_of(recipe), {.checkpoint = folder.path("run"), .out = out});
  const Hdf5File file(out);
  EXPECT_EQ(file.find("output/larger")->shape, (Shape{200, 3}));
  EXPECT_EQ(file.find("output/difference")->shape, (Shape{200}));
}

// Nor the data of the training.
TEST(OutputLossesRun, PredictNeedsNoTargets) {
  const Scratch folder;
  const std::string recipe = kPairs + "max_duration = '1ba'\n", out = folder.path("predictions.h5");
  ShardedJob{recipe, folder.path("run")}.run({"none", 1});
  PosixDisk disk;
  const at::Tensor images = at::zeros({5, 1, 8, 8});
  write_hdf5(disk, folder.path("new.h5"),
             {hdf5_array("test/left", images), hdf5_array("test/right", images)});
  const std::regex train("examples/data/pairs.h5'\ngroup = 'train"), data("'[^']*examples/data/pairs.h5'");
  const std::string moved = std::regex_replace(recipe, train, "none.h5'\ngroup = 'train");
  const Setting elsewhere = recipe_of(std::regex_replace(moved, data, "'" + folder.path("new.h5") + "'"));
  predict_text(elsewhere, {.checkpoint = folder.path("run"), .out = out});
  EXPECT_EQ(Hdf5File(out).find("output/larger")->shape, (Shape{5, 3}));
}

TEST(OutputLossesRun, RefuseAMetricOfAnOutputThatIsNotThere) {
  const Scratch folder;
  const std::string recipe =
      std::regex_replace(kPairs, std::regex("(Error'\noutput = ')difference"), "$1size");
  const std::string message = message_of<UserError>([&] {
    ShardedJob{recipe + "max_duration = '1ba'\n", folder.path()}.run({"none", 1});
  });
  EXPECT_THAT(message,
              testing::HasSubstr("output = \"size\": the program has no output 'size'; it has 'larger'"));
}

}  // namespace
}  // namespace tutti
