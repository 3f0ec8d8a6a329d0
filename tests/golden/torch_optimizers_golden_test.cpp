#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/golden/golden_file.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"

namespace tutti {
namespace {

const std::string kOptimizerFile = own_path("torch_optimizers.h5");

// The parameters of every case, as in make_torch_optimizers.py.
const std::vector<std::pair<std::string, Shape>> kParameters = {
    {"a.weight", {6, 4}}, {"a.bias", {5}},  {"b.conv", {3, 2, 3, 2}},
    {"b.scale", {}},      {"wide", {3, 8}}, {"embed.weight", {4, 3}}};

Setting section_of(const GoldenCase& c) {
  const Catalog catalog = optimizer_catalog();
  const Setting recipe = parse_recipe(c.text("recipe"), "case.toml");
  return resolve(recipe, std::span(&catalog, 1)).at("optimizer");
}

std::vector<at::Tensor> split(const at::Tensor& joined) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const auto& [name, shape] : kParameters) {
    const int64_t numbers = c10::multiply_integers(shape);
    parts.push_back(joined.narrow(0, begin, numbers).view(shape).clone());
    begin += numbers;
  }
  return parts;
}

class TorchOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(TorchOptimizer, MovesParametersAsTheOriginal) {
  const GoldenCase c(kOptimizerFile, GetParam());
  c.expect_only({"recipe"}, {"weights", "gradients", "factors"});
  c.expect_only_outputs({"weights"});
  std::vector<ParamView> views;
  const auto weights = split(c.tensor("in/weights"));
  for (size_t i = 0; i < weights.size(); ++i) views.push_back(whole_view(kParameters[i].first, weights[i]));
  const auto optimizer = make_optimizer(section_of(c), views);
  const at::Tensor factors = c.tensor("in/factors");
  std::vector<at::Tensor> walk;
  for (int64_t step = 0; step < factors.size(0); ++step) {
    const auto gradients = split(c.tensor("in/gradients")[step] * 4);
    for (size_t i = 0; i < views.size(); ++i) views[i].grad = gradients[i];
    optimizer->set_lr(optimizer->base_lr() * factors[step].item<double>());
    optimizer->step(at::scalar_tensor(4.0F));
    std::vector<at::Tensor> flat;
    for (const ParamView& view : views) flat.push_back(view.tensor.flatten());
    walk.push_back(at::cat(flat));
  }
  c.expect_close(at::stack(walk), "out/weights");
}

INSTANTIATE_TEST_SUITE_P(All, TorchOptimizer, testing::ValuesIn(golden_cases(kOptimizerFile)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
