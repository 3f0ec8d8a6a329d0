#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_file.h"
#include "tests/recipes/section.h"
#include "training/optimizer.h"

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

const std::set<std::string> kParameters = {"lr",    "momentum", "dampening", "nesterov",    "weight_decay",
                                           "betas", "eps",      "amsgrad",   "scheduled_lr"};

Setting section_of(const GoldenCase& c) {
  const Known& defaults = known(kOptimizerKinds, c.text("composer_api"), "optimizer");
  const auto number = [&](const char* key, double fallback) { return c.has(key) ? c.number(key) : fallback; };
  const std::vector<double> betas =
      c.has("betas") ? c.numbers("betas") : std::vector<double>{0.9, defaults.beta2};
  return section_with({{"kind", defaults.kind},
                       {"lr", c.number("lr")},
                       {"momentum", number("momentum", 0.0)},
                       {"dampening", number("dampening", 0.0)},
                       {"nesterov", number("nesterov", 0.0) != 0.0},
                       {"weight_decay", number("weight_decay", defaults.weight_decay)},
                       {"betas", list_value({betas.at(0), betas.at(1)})},
                       {"eps", number("eps", 1e-8)},
                       {"amsgrad", number("amsgrad", 0.0) != 0.0}});
}

class GoldenOptimizer : public testing::TestWithParam<std::string> {};

// Gradients come as sums over `scale` samples, as they do in training.
TEST_P(GoldenOptimizer, MovesParametersAsPyTorchDoes) {
  const GoldenCase c(golden_path("optimizers.h5"), GetParam());
  c.expect_only(kParameters, {"p0", "p1", "g0", "g1", "lr"});
  constexpr float kScale = 8.0F;
  std::vector<ParamView> views = {whole_view("p0", c.tensor("in/p0").clone()),
                                  whole_view("p1", c.tensor("in/p1").clone())};
  const auto optimizer = make_optimizer(section_of(c), views);
  std::vector<at::Tensor> walks[2];
  for (int64_t step = 0; step < c.tensor("in/lr").size(0); ++step) {
    for (size_t i = 0; i < 2; ++i) views[i].grad = c.tensor("in/g" + std::to_string(i))[step] * kScale;
    optimizer->set_lr(c.tensor("in/lr")[step].item<double>());
    optimizer->step(at::scalar_tensor(kScale));
    for (size_t i = 0; i < 2; ++i) walks[i].push_back(views[i].tensor.clone());
  }
  c.expect_close(at::stack(walks[0]), "out/p0");
  c.expect_close(at::stack(walks[1]), "out/p1");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenOptimizer, testing::ValuesIn(golden_cases(golden_path("optimizers.h5"))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenOptimizer);

}  // namespace
}  // namespace tutti
