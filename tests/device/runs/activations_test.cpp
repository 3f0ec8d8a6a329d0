// Activation checkpointing on the test device: the bits of training without it, on the CPU.

#include <ATen/ops/dropout.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/model.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

const std::string kCheckpointed = "activation_checkpointing = true\n";

std::vector<Sharded> some_strategies() {
  return {{"none", 1},      {"none", 2}, {"optimizer", 2},
          {"gradients", 2}, {"full", 2}, {"hybrid", 4, "shard_size = 2\n"}};
}

void expect_bits_without(DeviceRun run, Where where = Where::kLate, const std::string& how = kCheckpointed) {
  const ShardedRun plain = run.run(Where::kCpu);
  run.sharded.more += how;
  const ShardedRun checkpointed = run.run(where);
  EXPECT_EQ(checkpointed.digest, plain.digest) << run.sharded.text();
  EXPECT_TRUE(checkpointed.metrics == plain.metrics) << "the log of " << run.sharded.text();
}

class ActivationsOnTheDevice : public DeviceRunTest, public testing::WithParamInterface<Sharded> {};

TEST_P(ActivationsOnTheDevice, AreComputedAgainWithTheSameBits) {
  expect_bits_without({kSmallGpt + steps(3) + "precision = 'amp_bf16'\ngrad_accum = 2\n", GetParam()});
  if (!is_nightly()) return;
  for (const Where where : {Where::kEager, Where::kLate}) {
    expect_bits_without({kSmallGpt + steps(6), GetParam()}, where);
    expect_bits_without({kSmallGpt + steps(4), GetParam()}, where,
                        "activation_checkpointing = ['GptMlp', '*.ln_f']\n");
    expect_bits_without({kSmallResnet + steps(4), GetParam()}, where);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ActivationsOnTheDevice, testing::ValuesIn(some_strategies()),
                         [](const auto& info) {
                           return info.param.strategy + "_" + std::to_string(info.param.ranks);
                         });

class ActivationsOfTheDevice : public DeviceRunTest {};

TEST_F(ActivationsOfTheDevice, FindStatisticsOnce) {
  expect_bits_without({kSmallResnet + steps(3), {"full", 2}}, Where::kEager);
}

// As a plugin may: of libtorch's generator, not of a key.
class DrawsOfTheGenerator final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override {
    return at::dropout(input.tensor(), 0.3, context().training);
  }
  const char* kind() const override { return "DrawsOfTheGenerator"; }
};

// Ranks 0 and 4 share a device, and each waits within its microbatches for parameters of the other.
TEST_F(ActivationsOfTheDevice, DrawWhatTheFirstForwardDrew) {
  DeviceRun run{kSmallGpt + steps(3), {"full", 5}};
  run.prepare = [](Job& job) {
    job.make_model = [](const Setting& section, const SampleSpec& samples) {
      std::shared_ptr<Model> model = make_model(section, samples);
      replace_layers(*model, [](const NamedSlot& named) {
        const bool is_dropout = dynamic_cast<const Dropout*>(&named.slot->layer()) != nullptr;
        return is_dropout ? std::make_shared<DrawsOfTheGenerator>() : nullptr;
      });
      return model;
    };
  };
  expect_bits_without(run);
}

}  // namespace
}  // namespace tutti
