#include "algorithms/surgery/ghost_batchnorm.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/zoo/mlp.h"
#include "models/zoo/resnet_cifar.h"
#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(GhostBatchNormTest, ActsAtInit) { EXPECT_EQ(events_of(GhostBatchNorm()), std::set{Event::kInit}); }

std::shared_ptr<ResNetCifar> resnet() {
  return std::make_shared<ResNetCifar>(
      ResNetCifarOptions{.depth = 8, .width = 4, .in_channels = 1, .num_classes = 10});
}

TEST(GhostBatchNormTest, KeepsAllWeightsAndActsOnEachNormOnce) {
  const auto plain = resnet(), ghost = resnet();
  note_names(*ghost);
  const int norms = apply_ghost_batchnorm(*ghost, 4);
  EXPECT_EQ(norms, 9);
  EXPECT_EQ(apply_ghost_batchnorm(*ghost, 2), 0) << "they are ghosts already";
  materialise(*plain, 3);
  materialise(*ghost, 3);
  const auto before = parameters(*plain), after = parameters(*ghost);
  ASSERT_EQ(before.size(), after.size());
  int renamed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(before[i].parameter->tensor.equal(after[i].parameter->tensor)) << before[i].name;
    EXPECT_EQ(after[i].parameter->origin, before[i].name);
    renamed += after[i].name.find(".batchnorm.") != std::string::npos;
  }
  EXPECT_EQ(renamed, 2 * norms);
}

const std::vector<int64_t> kOfAChannel = {0, 2};

// A user's own norm.
class OwnNorm final : public BatchNorm {
 public:
  OwnNorm() : BatchNorm(BatchNormOptions{.channels = 2}) {}
  const char* kind() const override { return "OwnNorm"; }
};

struct GhostNorm {
  explicit GhostNorm(SmallBatch small) {
    apply_ghost_batchnorm(model, 3, small);
    materialise(model, 1);
    set_context(model, &context);
  }
  std::vector<RunningStatistics> found;
  ForwardContext context{.training = true, .statistics = &found};
  std::shared_ptr<BatchNorm> norm = std::make_shared<OwnNorm>();
  Sequential model{{norm}};
};

// Mean 0 and variance 1 of each part, of ceil(7 / 3) parts of ceil(7 / 3) samples at most.
TEST(GhostBatchNormTest, NormalisesPartsOfABatchByThemselves) {
  GhostNorm ghost(SmallBatch::kNormalise);
  const at::Tensor y = ghost.model.forward(at::randn({7, 2, 5}) * 3 + 1).tensor();
  for (const auto& [first, size] : {std::pair{0, 3}, {3, 3}, {6, 1}}) {
    const at::Tensor part = y.narrow(0, first, size);
    EXPECT_TRUE(at::allclose(part.mean(kOfAChannel), at::zeros({2}), 0, 1e-5));
    EXPECT_TRUE(at::allclose(part.var(kOfAChannel, false), at::ones({2}), 0, 1e-3));
  }
  EXPECT_EQ(ghost.found.size(), 3U);
}

TEST(GhostBatchNormTest, SmallBatchesAreNormalisedWholeOrRefused) {
  const at::Tensor x = at::randn({2, 2, 5});
  GhostNorm whole(SmallBatch::kNormalise), strict(SmallBatch::kRefuse);
  EXPECT_TRUE(at::allclose(whole.model.forward(x).tensor().mean(kOfAChannel), at::zeros({2}), 0, 1e-5));
  EXPECT_THROW(strict.model.forward(x), UserError);
  strict.context.training = false;
  EXPECT_NO_THROW(strict.model.forward(x)) << "evaluation needs no parts";
}

TEST(GhostBatchNormTest, TheMomentumStaysIfAPassIsBrokenOff) {
  GhostNorm ghost(SmallBatch::kNormalise);
  int parts = 0;
  const auto watch = ghost.model.slots()[0]->layer().slots()[0]->before([&](const TensorTree&) {
    if (++parts == 2) throw OperatingError("out of memory");
  });
  EXPECT_THROW(ghost.model.forward(at::randn({6, 2, 5})), OperatingError);
  EXPECT_EQ(ghost.norm->options().momentum, 0.1);
}

State state_of(const std::shared_ptr<Model>& model, int64_t global_batch) {
  State state;
  state.model = model;
  state.topology.data_world = 2;
  state.global_batch = global_batch;
  state.train_samples = 100;
  state.dataloader_len = (100 + global_batch - 1) / global_batch;
  return state;
}

void require_fit(State& state) {
  GhostBatchNorm algorithm(8);
  algorithm.set_section({Setting::Table(), "algorithms.0", {"r.toml", 7}});
  Logger logger;
  algorithm.apply(Event::kInit, state, logger);
  algorithm.require(state);
}

std::string why_refused(State& state) {
  return message_of<UserError>([&] { require_fit(state); });
}

TEST(GhostBatchNormTest, ARanksBatchHasAGhostBatchAtLeast) {
  State uneven = state_of(resnet(), 14);
  EXPECT_THAT(why_refused(uneven), AllOf(HasSubstr("r.toml:7"), HasSubstr("7 samples")));
  State short_end = state_of(resnet(), 16);  // 100 = 6 x 16 + 4
  EXPECT_NO_THROW(require_fit(short_end));
  short_end.composer = true;
  short_end.model = resnet();
  EXPECT_THAT(why_refused(short_end), HasSubstr("2 samples"));
}

// Of 15 samples of a rank: 8 and 7, or 9 and 6.
TEST(GhostBatchNormTest, ComposersMicrobatchesHaveAGhostBatchToo) {
  State state = state_of(resnet(), 30);
  state.train_samples = 90;
  state.grad_accum = 2;
  EXPECT_NO_THROW(require_fit(state));
  state.composer = true;
  state.model = resnet();
  EXPECT_THAT(why_refused(state), AllOf(HasSubstr("r.toml:7"), HasSubstr("7 samples")));
  state.device_train_microbatch_size = 9;
  state.model = resnet();
  EXPECT_THAT(why_refused(state), HasSubstr("6 samples"));
}

TEST(GhostBatchNormTest, AModelWithoutNormsIsAWarning) {
  State state =
      state_of(std::make_shared<Mlp>(MlpOptions{.in_features = 8, .hidden = {4}, .num_classes = 10}), 2);
  std::string warned;
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  GhostBatchNorm algorithm(8);
  Logger logger;
  algorithm.apply(Event::kInit, state, logger);
  EXPECT_THAT(warned, AllOf(HasSubstr("GhostBatchNorm has no effect: Mlp"), HasSubstr("BatchNorm")));
  EXPECT_NO_THROW(algorithm.require(state)) << "there is nothing to normalise";
}

}  // namespace
}  // namespace tutti
