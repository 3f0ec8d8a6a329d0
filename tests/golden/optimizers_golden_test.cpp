#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"
#include "training/optimizers/optimizer.h"

namespace tutti {
namespace {

// An optimizer as torch and Composer make it where the case leaves a parameter out.
struct Known {
  std::string kind;
  double weight_decay = 0.0;
  double beta2 = 0.999;
};

const std::map<std::string, Known> kOptimizerKinds = {
    {"torch.optim.SGD", {"sgd"}},
    {"torch.optim.Adam", {"adam"}},
    {"torch.optim.AdamW", {"adamw", 0.01}},
    {"composer.optim.DecoupledSGDW", {"decoupled_sgdw"}},
    {"composer.optim.DecoupledAdamW", {"decoupled_adamw", 1e-5, 0.95}}};

const std::set<std::string> kParameters = {"lr",    "momentum", "dampening", "nesterov", "weight_decay",
                                           "betas", "eps",      "amsgrad",   "maximize", "scheduled_lr"};

Setting section_of(const GoldenCase& c) {
  const Known& defaults = known(kOptimizerKinds, c.text("composer_api"), "optimizer");
  const auto number = [&](const char* key, double fallback) { return c.has(key) ? c.number(key) : fallback; };
  const std::vector<double> betas =
      c.has("betas") ? c.numbers("betas") : std::vector<double>{0.9, defaults.beta2};
  return section_with({{"kind", defaults.kind},
                       {"lr", number("lr", 0.001)},
                       {"momentum", number("momentum", 0.0)},
                       {"dampening", number("dampening", 0.0)},
                       {"nesterov", number("nesterov", 0.0) != 0.0},
                       {"weight_decay", number("weight_decay", defaults.weight_decay)},
                       {"betas", list_value({betas.at(0), betas.at(1)})},
                       {"eps", number("eps", 1e-8)},
                       {"amsgrad", number("amsgrad", 0.0) != 0.0},
                       {"maximize", number("maximize", 0.0) != 0.0}});
}

// The parameters of a case: p0, p1, ...
std::set<std::string> parameters_of(const GoldenCase& c) {
  std::set<std::string> found;
  while (c.holds("in/p" + std::to_string(found.size()))) found.insert("p" + std::to_string(found.size()));
  return found;
}

// The learning rate of each step.
at::Tensor rates_of(const GoldenCase& c) {
  if (c.holds("in/lr")) return c.tensor("in/lr");
  return at::full({c.tensor("in/g0").size(0)}, c.has("lr") ? c.number("lr") : 0.001, at::kDouble);
}

// The values of every parameter after each step. Gradients come as sums over `scale` samples, as they do in
// training.
std::map<std::string, at::Tensor> walks_of(const GoldenCase& c, const std::set<std::string>& names) {
  constexpr float kScale = 8.0F;
  std::vector<ParamView> views;
  for (const std::string& name : names) views.push_back(whole_view(name, c.tensor("in/" + name).clone()));
  const auto optimizer = make_optimizer(section_of(c), views);
  std::map<std::string, std::vector<at::Tensor>> values;
  const at::Tensor rates = rates_of(c);
  for (int64_t step = 0; step < rates.size(0); ++step) {
    for (ParamView& view : views) view.grad = c.tensor("in/g" + view.name.substr(1))[step] * kScale;
    optimizer->set_lr(rates[step].item<double>());
    optimizer->step(at::scalar_tensor(kScale));
    for (const ParamView& view : views) values[view.name].push_back(view.tensor.clone());
  }
  std::map<std::string, at::Tensor> walks;
  for (const auto& [name, steps] : values) walks[name] = at::stack(steps);
  return walks;
}

class GoldenOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(GoldenOptimizer, MovesParametersAsPyTorchDoes) {
  const GoldenCase c(golden_path("optimizers.h5"), GetParam());
  const std::set<std::string> names = parameters_of(c);
  ASSERT_FALSE(names.empty()) << c.title();
  std::set<std::string> inputs = {"lr"};
  for (const std::string& name : names) inputs.insert({name, "g" + name.substr(1)});
  std::set<std::string> parameters = kParameters;
  for (const std::string& name : c.attributes())
    if (is_of_no_number(name)) parameters.insert(name);
  c.expect_only(parameters, inputs);
  if (c.has("error")) {
    EXPECT_THROW(walks_of(c, names), UserError) << c.title();
    return;
  }
  c.expect_only_outputs(names);
  for (const auto& [name, walk] : walks_of(c, names)) c.expect_close(walk, "out/" + name);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenOptimizer, testing::ValuesIn(golden_cases(golden_path("optimizers.h5"))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenOptimizer);

}  // namespace
}  // namespace tutti
