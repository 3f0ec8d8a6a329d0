#include "models/torch/torch_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/statistics_rows.h"
#include "tests/models/torch/adapted_nets.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

at::Tensor gray_images(int64_t count = 8) {
  return at::arange(count * 16, at::kFloat).view({count, 1, 4, 4}).sin();
}

std::shared_ptr<Layer> made(const AdaptedNet& net) {
  const auto layer = net.layer();
  materialise(*layer, 7);
  return layer;
}

void expect_plain(const AdaptedNet& net) {
  const auto layer = made(net);
  const at::Tensor probe = at::arange(24, at::kFloat).view({8, 3}).cos();
  const auto plain = net.plain(gray_images(), probe);
  std::vector<RunningStatistics> found;
  const ForwardContext context{.statistics = &found};
  const ContextScope scope(*layer, context);
  const at::Tensor output = layer->forward(gray_images()).tensor();
  EXPECT_TRUE(at::allclose(output, plain.output, 1e-5, 1e-6));
  (output * probe).sum().backward();
  const auto mine = parameters(*layer);
  ASSERT_EQ(mine.size(), plain.gradients.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].name, plain.gradients[i].first);
    EXPECT_TRUE(at::allclose(mine[i].parameter->tensor.grad(), plain.gradients[i].second, 1e-4, 1e-5))
        << mine[i].name;
  }
  const StatisticsRows rows(*layer);
  const at::Tensor row = at::zeros({rows.size()});
  rows.add(found, row, 0);
  rows.apply(row);
  const auto buffers_now = buffers(*layer);
  for (std::size_t i = 0; i < buffers_now.size(); ++i)
    EXPECT_TRUE(at::allclose(buffers_now[i].buffer->tensor, plain.buffers[i].second, 1e-5, 1e-6))
        << buffers_now[i].name;
}

TEST(TorchModule, GivesTheModulesOutputsGradientsAndBuffers) { expect_plain({}); }

TEST(TorchModule, LeavesNormsInEvaluationAsTheyAre) { expect_plain({.frozen_norms = true}); }

TEST(TorchModule, ReadsTheTensorsThatTheLayerHasNow) {
  const auto layer = made({});
  const at::Tensor before = layer->forward(gray_images()).tensor();
  const auto all = parameters(*layer);
  Parameter& bias = *all.back().parameter;
  bias.tensor = (bias.tensor.detach() + 2).requires_grad_();
  const at::Tensor after = layer->forward(gray_images()).tensor();
  EXPECT_TRUE(at::allclose(after, before + 2, 1e-5, 1e-5));
  after.sum().backward();
  EXPECT_TRUE(bias.tensor.grad().equal(at::full({3}, 8.0F)));
}

TEST(TorchModule, ChangesNoBufferInAPassAndRefusesModulesThatDo) {
  const auto layer = made({});
  std::vector<at::Tensor> before;
  for (const auto& one : buffers(*layer)) before.push_back(one.buffer->tensor.clone());
  layer->forward(gray_images());
  const auto after = buffers(*layer);
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_TRUE(after[i].buffer->tensor.equal(before[i])) << after[i].name;
  EXPECT_THAT(message_of<UserError>([&] { made({.writes_buffer = true})->forward(gray_images()); }),
              HasSubstr("forward writes the buffer 'scale'"));
}

TEST(TorchModule, DrawsDropoutByThePlacesOfSamples) {
  const auto layer = made({.frozen_norms = true, .dropout = 0.5});
  ForwardContext context;
  context.source = [](std::string_view name, int64_t place) { return make_draws(5, {name, 0, place}); };
  const ContextScope scope(*layer, context);
  const auto outputs = [&](int64_t first, int64_t count) {
    context.begin_pass(first);
    return layer->forward(gray_images().narrow(0, first, count)).tensor().detach();
  };
  const at::Tensor whole = outputs(0, 8);
  EXPECT_TRUE(at::allclose(whole.narrow(0, 4, 4), outputs(4, 4), 1e-4, 1e-5));
  const EvaluationMode evaluation(*layer);
  EXPECT_FALSE(layer->forward(gray_images()).tensor().equal(whole));
}

TEST(TorchModule, IsConstructedAlikeOnAllRanks) {
  const at::Tensor drawn = at::rand({1});
  const auto first = made({}), second = made({});
  const auto one = parameters(*first), other = parameters(*second);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(one[i].parameter->tensor.equal(other[i].parameter->tensor)) << one[i].name;
}

}  // namespace
}  // namespace tutti
