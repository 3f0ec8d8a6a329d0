#include "tests/device/runs/device_run.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <regex>

#include "models/loss_options.h"
#include "tensors/memory/meter.h"
#include "tests/device/test_device.h"
#include "tests/runtime/scratch.h"

namespace tutti {

const std::string kSmallMlp = kSyntheticMlp + "eval_interval = '3ba'\n";

// Of more tokens than bytes, so that no text is written at the end: 400 passes of the model.
const std::string kSmallGpt = R"(seed = 5
[model]
kind = 'gpt'
vocab_size = 300
n_positions = 8
n_embd = 12
n_layer = 2
n_head = 3
dropout = 0.1
)" + kTextData + R"([optimizer]
kind = 'adamw'
lr = 0.01
[train]
)";

const std::string kSmallResnet = R"(seed = 5
[model]
kind = 'resnet_cifar'
depth = 20
width = 4
[data.train]
kind = 'synthetic'
samples = 48
batch_size = 8
shape = [3, 8, 8]
[data.eval]
kind = 'synthetic'
samples = 12
batch_size = 8
shape = [3, 8, 8]
[optimizer]
kind = 'sgd'
lr = 0.05
momentum = 0.9
[train]
eval_interval = '3ba'
)";

std::vector<std::pair<std::string, std::string>> small_mlps_by_loss() {
  const std::string weights = " = [1, 2, 0.5, 1, 1, 1, 1, 1, 1, 3]";
  const std::map<std::string, std::string> keys = {
      {"cross_entropy", ", weight" + weights},
      {"binary_cross_entropy_with_logits", ", pos_weight" + weights},
      {"bce_with_logits", ", pos_weight = 2.0"},
      {"dice", ", softmax = true"}};
  std::vector<std::pair<std::string, std::string>> recipes;
  for (const std::string& kind : loss_catalog().kinds()) {
    if (kind == kPluginKind) continue;
    const std::string loss =
        "loss = { kind = '" + kind + "'" + (keys.contains(kind) ? keys.at(kind) : "") + " }\n";
    recipes.emplace_back(kind, replaced(kSmallMlp, "kind = 'mlp'\n", "kind = 'mlp'\n" + loss));
  }
  return recipes;
}

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return at == std::string::npos ? text : text.replace(at, before.size(), after);
}

std::string on(Where where) {
  setenv("TUTTI_TEST_DEVICE", where == Where::kLate ? "late" : "", 1);
  return where == Where::kCpu ? "[device]\nkind = 'cpu'\n" : "[device]\nkind = 'test'\n";
}

ShardedRun DeviceRun::run(Where where, const std::string& folder) const {
  const Scratch own;
  const int64_t kernels = test_device::counters().kernels;
  const ShardedRun done = ShardedJob{.recipe = recipe + on(where),
                                     .folder = folder.empty() ? own.path("run") : folder,
                                     .prepare = prepare}
                              .run(sharded);
  EXPECT_EQ(test_device::counters().kernels > kernels, where != Where::kCpu);
  EXPECT_THAT(test_device::take_findings(), testing::IsEmpty());
  return done;
}

void expect_bits_of_the_cpu(const DeviceRun& run, Where where) {
  const ShardedRun cpu = run.run(Where::kCpu), device = run.run(where);
  EXPECT_EQ(device.digest, cpu.digest);
  EXPECT_EQ(device.metrics, cpu.metrics);
}

DeviceRunTest::DeviceRunTest() {
  Meter::install();  // first: the test device keeps the CPU allocator that it finds
  test_device::install();
  test_device::set_autocast(test_device::AutocastPolicy::kCpu);
  test_device::take_findings();
}

DeviceRunTest::~DeviceRunTest() { test_device::set_mode(test_device::Mode::kEager); }

}  // namespace tutti
