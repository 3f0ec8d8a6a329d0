// A program of torch.export trains as the models of the zoo do.

#include <gtest/gtest.h>

#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

const std::string kProgram = R"(seed = 5
[model]
kind = 'exported'
path = ')" TUTTI_SOURCE_DIR R"(/tests/golden/exported/convnet.pt2'
[data.train]
kind = 'synthetic'
samples = 48
batch_size = 16
shape = [3, 6, 6]
classes = 5
[data.eval]
kind = 'synthetic'
samples = 12
batch_size = 8
shape = [3, 6, 6]
classes = 5
)" + kClippedAdamW;

ShardedRun trained(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return ShardedJob{recipe, folder.path()}.run(sharded);
}

void expect_equal_bits(const std::string& recipe, const std::vector<std::string>& strategies) {
  const ShardedRun first = trained(recipe, {strategies[0]});
  for (const std::string& strategy : strategies) {
    const ShardedRun other = trained(recipe, {strategy});
    EXPECT_EQ(other.digest, first.digest) << strategy;
    EXPECT_TRUE(other.metrics == first.metrics) << strategy;
  }
}

TEST(ExportedPrograms, HaveTheBitsOfUnshardedOnes) {
  expect_equal_bits(kProgram + steps(7), {"none", "optimizer", "gradients", "full"});
}

// Gradients that are cut are summed over ranks in each microbatch.
TEST(ExportedPrograms, HaveThemInMicrobatches) {
  const std::string recipe = kProgram + steps(5) + "grad_accum = 4\n";
  expect_equal_bits(recipe, {"none", "optimizer"});
  expect_equal_bits(recipe, {"gradients", "full"});
}

TEST(ExportedPrograms, ResumeWhereTheyEnded) {
  const Scratch folder;
  const std::string whole = kProgram + steps(6), half = kProgram + steps(3);
  ShardedJob{half, folder.path()}.run({"full"});
  ShardedJob rest{whole, folder.path()};
  rest.resume = "auto";
  EXPECT_EQ(rest.run({"full"}).digest, trained(whole, {"full"}).digest);
}

}  // namespace
}  // namespace tutti
