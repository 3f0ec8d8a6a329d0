#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <regex>

#include "algorithms/surgery/stochastic_depth.h"
#include "models/layers/blocks.h"
#include "models/layers/statistics_rows.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kStochasticFile = "stochastic_depth.h5";

StochasticDepthOptions stochastic_options(const GoldenCase& c) {
  StochasticDepthOptions options{.drop_rate = c.number("drop_rate")};
  if (c.has("target_layer_name")) options.target_layer_name = c.text("target_layer_name");
  if (c.has("stochastic_method"))
    options.stochastic_method =
        known<StochasticMethod>({{"block", StochasticMethod::kBlock}, {"sample", StochasticMethod::kSample}},
                                c.text("stochastic_method"), "method");
  options.drop_distribution = known<DropDistribution>(
      {{"linear", DropDistribution::kLinear}, {"uniform", DropDistribution::kUniform}},
      c.text("drop_distribution"), "distribution");
  return options;
}

// Blocks of the weights' sizes; `arch`, torch's text of the net, has the strides.
std::vector<std::shared_ptr<Layer>> blocks_of(const GoldenCase& c) {
  static const std::regex conv2(R"re(\(conv2\): Conv2d\([^)]*\), stride=\((\d+), \d+\))re");
  const std::string arch = c.text("arch");
  std::vector<std::shared_ptr<Layer>> blocks;
  for (std::sregex_iterator found(arch.begin(), arch.end(), conv2), end; found != end; ++found) {
    const at::Tensor first = c.tensor("in/weights/" + std::to_string(blocks.size()) + ".conv1.weight");
    blocks.push_back(std::make_shared<Bottleneck>(first.size(1), first.size(0), std::stoll((*found)[1])));
  }
  return blocks;
}

std::map<std::string, at::Tensor> tensors_of_net(Layer& net) {
  std::map<std::string, at::Tensor> all;
  for (const auto& one : parameters(net)) all[one.name] = one.parameter->tensor;
  for (const auto& one : buffers(net)) all[one.name] = one.buffer->tensor;
  return all;
}

void load_net(const GoldenCase& c, Layer& net) {
  const at::NoGradGuard no_grad;
  const auto own = tensors_of_net(net);
  const auto names = c.names("in/weights");
  ASSERT_EQ(names.size(), own.size()) << c.title();
  for (const std::string& name : names)
    own.at(name).copy_(c.tensor("in/weights/" + name).reshape(own.at(name).sizes()));
}

DrawScript stochastic_script(const GoldenCase& c) {
  DrawScript script;
  if (!c.holds("in/draws")) return script;
  for (const std::string& name : c.names("in/draws")) {
    const at::Tensor drawn = c.tensor("in/draws/" + name).reshape({-1});
    for (int64_t i = 0; i < drawn.numel(); ++i) {
      if (name.ends_with("_torch.bernoulli"))
        script.bernoulli.push_back(drawn[i].item<float>() == 1.0F);
      else if (name.ends_with("_torch.rand"))
        script.uniform.push_back(drawn[i].item<float>());
      else
        throw std::logic_error("no test knows the draws of " + name);
    }
  }
  return script;
}

void expect_rates(const GoldenCase& c, const std::vector<std::shared_ptr<ResidualBlock>>& blocks) {
  std::vector<double> rates;
  for (const auto& block : blocks) rates.push_back(block->drop()->rate);
  c.expect_close(at::tensor(rates, at::kDouble), "out/drop_rates");
}

void expect_net(const GoldenCase& c) {
  c.expect_only({"arch", "draws", "drop_distribution", "drop_rate", "stochastic_method", "target_layer_name"},
                {"draws", "weights", "x"});
  c.expect_only_outputs({"drop_rates", "weights_after_train", "y_eval", "y_train"});
  const at::NoGradGuard no_grad;
  Sequential net(blocks_of(c));
  const auto blocks = apply_stochastic_depth(net, stochastic_options(c));
  expect_rates(c, blocks);
  materialise(net, 1);
  load_net(c, net);
  std::vector<RunningStatistics> found;
  const ScriptedDraws draws(stochastic_script(c));
  ForwardContext context{.training = true, .statistics = &found};
  context.source = [&](std::string_view name, int64_t place) { return draws.source()({name, 0, place}); };
  set_context(net, &context);
  const at::Tensor x = c.tensor("in/x");
  c.expect_close(net.forward(x).tensor(), "out/y_train");
  draws.expect_all_used();
  const StatisticsRows rows(net);
  const at::Tensor row = at::zeros({rows.size()});
  rows.add(found, row, 0);
  rows.apply(row);
  for (const auto& [name, tensor] : tensors_of_net(net)) {
    const std::string golden = "out/weights_after_train/" + name;
    c.expect_close(tensor.reshape(c.tensor(golden).sizes()), golden);
  }
  context.training = false;
  c.expect_close(net.forward(x).tensor(), "out/y_eval");
}

Time warmup_of(const GoldenCase& c) {
  if (!c.has("drop_warmup")) return {0.0, TimeUnit::kDuration};
  return c.is_text("drop_warmup") ? Time::parse_composer(c.text("drop_warmup"))
                                  : Time(c.number("drop_warmup"), TimeUnit::kDuration);
}

class ModelOfBlocks final : public Model {
 public:
  explicit ModelOfBlocks(int64_t blocks) {
    for (int64_t i = 0; i < blocks; ++i) add_slot(std::to_string(i), std::make_shared<Bottleneck>(4, 1, 1));
  }
  TensorTree forward(const Batch&) override { return {}; }
  at::Tensor loss(const Outputs&, const Batch&) override { return {}; }
  const char* kind() const override { return "ModelOfBlocks"; }
  std::vector<double> rates() const {
    std::vector<double> all;
    for (const auto& slot : slots())
      all.push_back(dynamic_cast<const ResidualBlock&>(slot->layer()).drop()->rate);
    return all;
  }
};

void expect_warmup(const GoldenCase& c) {
  c.expect_only({"drop_distribution", "drop_rate", "drop_warmup", "max_duration", "n_blocks",
                 "stochastic_method", "target_layer_name"},
                {"batch"});
  c.expect_only_outputs({"drop_rates"});
  const auto model = std::make_shared<ModelOfBlocks>(static_cast<int64_t>(c.number("n_blocks")));
  State state;
  state.model = model;
  state.composer = true;
  state.max_duration = Time::parse(c.text("max_duration"));
  ASSERT_EQ(state.max_duration.unit(), TimeUnit::kBatch) << c.title();
  StochasticDepth algorithm(stochastic_options(c), warmup_of(c));
  Logger logger;
  algorithm.apply(Event::kInit, state, logger);
  const at::Tensor batches = c.tensor("in/batch");
  std::vector<at::Tensor> rates;
  for (int64_t i = 0; i < batches.numel(); ++i) {
    state.timestamp.batch = batches[i].item<int64_t>();
    if (algorithm.match(Event::kBatchStart, state)) algorithm.apply(Event::kBatchStart, state, logger);
    rates.push_back(at::tensor(model->rates(), at::kDouble));
  }
  c.expect_close(at::stack(rates), "out/drop_rates");
}

void expect_refused(const GoldenCase& c) {
  State state;
  state.model = std::make_shared<ModelOfBlocks>(1);
  Logger logger;
  const auto use = [&] {
    StochasticDepth algorithm(stochastic_options(c), warmup_of(c));
    algorithm.apply(Event::kInit, state, logger);
    algorithm.require(state);
  };
  EXPECT_THROW(use(), UserError) << c.title();
}

class GoldenStochasticDepth : public testing::TestWithParam<std::string> {};

TEST_P(GoldenStochasticDepth, IsComposers) {
  const GoldenCase c(golden_path(kStochasticFile), GetParam());
  if (c.has("error")) return expect_refused(c);
  const std::string api = c.text("composer_api");
  if (api.ends_with("apply_stochastic_depth")) return expect_net(c);
  ASSERT_TRUE(api.ends_with("StochasticDepth.apply")) << c.title() << ": no test knows " << api;
  expect_warmup(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenStochasticDepth,
                         testing::ValuesIn(golden_cases(golden_path(kStochasticFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenStochasticDepth);

}  // namespace
}  // namespace tutti
