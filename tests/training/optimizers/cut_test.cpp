#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tensors/process_state.h"
#include "training/optimizers/adagrad.h"
#include "training/optimizers/adam.h"
#include "training/optimizers/lion.h"
#include "training/optimizers/nadam.h"
#include "training/optimizers/rmsprop.h"
#include "training/optimizers/sgd.h"

namespace tutti {
namespace {

constexpr int kSteps = 20;

using Views = std::vector<ParamView>;
using Make = std::function<std::unique_ptr<Optimizer>(const Views& views)>;

std::map<std::string, Make> optimizers() {
  const auto sgd = [](const Sgd::Options& options) {
    return [=](const Views& views) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Sgd>(views, Optimizer::Common{0.03, 0.07, {"*.1"}}, options);
    };
  };
  const auto adam = [](const Adam::Options& options) {
    return [=](const Views& views) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Adam>(views, Optimizer::Common{0.03, 0.07, {"*.1"}}, options);
    };
  };
  const auto other = []<class Kind, class Options>(const Options& options) {
    return [=](const Views& views) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Kind>(views, Optimizer::Common{0.03, 0.07, {"*.1"}}, options);
    };
  };
  using enum Adam::Decay;
  return {{"SGD", sgd({.momentum = 0.9, .dampening = 0.1})},
          {"SGD, plain", sgd({})},
          {"SGD, nesterov", sgd({.momentum = 0.9, .nesterov = true, .maximize = true})},
          {"DecoupledSGDW", sgd({.momentum = 0.9, .decoupled = true})},
          {"Adam", adam({.decay = kGradient})},
          {"Adam, amsgrad", adam({.amsgrad = true, .decay = kGradient, .maximize = true})},
          {"AdamW", adam({.decay = kWeight})},
          {"DecoupledAdamW", adam({.amsgrad = true, .decay = kDecoupled})},
          {"NAdam", other.operator()<NAdam>(NAdamOptions{.maximize = true})},
          {"Adagrad", other.operator()<Adagrad>(AdagradOptions{.lr_decay = 0.1})},
          {"RMSprop", other.operator()<RmsProp>(RmsPropOptions{.momentum = 0.9, .centered = true})},
          {"RMSprop, plain", other.operator()<RmsProp>(RmsPropOptions())},
          {"Lion", other.operator()<Lion>(LionOptions())}};
}

at::Tensor piece_of(const at::Tensor& whole, int pieces, int index) {
  return narrowed(whole, split(whole_region(whole.sizes()), 0, {pieces, index})).clone();
}

Views views_of(const std::vector<at::Tensor>& wholes, int pieces, int index) {
  Views views;
  for (std::size_t i = 0; i < wholes.size(); ++i)
    views.push_back(whole_view("w." + std::to_string(i), piece_of(wholes[i], pieces, index)));
  return views;
}

at::Tensor gradient_of(const at::Tensor& whole, std::size_t parameter, int step) {
  at::manual_seed(100 * step + static_cast<int>(parameter));
  return at::randn_like(whole) * 3;
}

// Weights, gradients and state of each parameter after all steps, joined. The second parameter gets no
// gradient in the first step: it counts its own steps.
std::vector<at::Tensor> trained(const std::vector<at::Tensor>& wholes, const Make& make, int pieces) {
  std::vector<std::vector<at::Tensor>> parts;
  for (int index = 0; index < pieces; ++index) {
    Views views = views_of(wholes, pieces, index);
    const auto optimizer = make(views);
    for (int step = 0; step < kSteps; ++step) {
      for (std::size_t i = step == 0 ? 2 : 0; i < wholes.size(); ++i)
        views[i].grad = piece_of(gradient_of(wholes[i], i, step), pieces, index);
      optimizer->step(at::full({}, 3.0));
    }
    std::vector<at::Tensor> all;
    for (const ParamView& view : views) all.insert(all.end(), {view.tensor, view.grad});
    for (const OptimizerState& state : optimizer->state())
      if (state.name != "step") all.push_back(state.tensor);
    parts.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) parts[i].push_back(all[i]);
  }
  std::vector<at::Tensor> joined;
  for (const auto& part : parts) joined.push_back(at::cat(part));
  return joined;
}

std::vector<at::Tensor> parameters(at::ScalarType dtype) {
  at::manual_seed(3);
  std::vector<at::Tensor> wholes;
  for (const Shape& shape : std::vector<Shape>{{33}, {1003}, {4097}, {4097, 3}, {2}, {64}, {1, 300}})
    wholes.push_back(at::randn(shape).to(dtype));
  wholes.push_back(at::randn({33, 3, 3, 3}).to(dtype).contiguous(at::MemoryFormat::ChannelsLast));
  return wholes;
}

void expect_equal(const std::vector<at::Tensor>& wholes, int threads, const std::vector<int>& cuts) {
  for (const auto& [name, make] : optimizers()) {
    set_compute_threads(1);
    const auto expected = trained(wholes, make, 1);
    set_compute_threads(threads);
    for (const int pieces : cuts) {
      const auto found = trained(wholes, make, pieces);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i].equal(expected[i]))
            << name << ", tensor " << i << " of " << expected[i].sizes() << " in " << pieces;
    }
  }
  set_compute_threads(1);
}

TEST(Cut, UpdatesDoNotDependOnIt) { expect_equal(parameters(at::kFloat), 1, {2, 3, 4, 8}); }

TEST(Cut, UpdatesOfTwoThreadsDoNotDependOnIt) { expect_equal(parameters(at::kFloat), 2, {1, 2, 3, 4}); }

TEST(Cut, UpdatesOf16BitsDoNotDependOnIt) { expect_equal(parameters(at::kBFloat16), 1, {2, 3, 4, 8}); }

// More small tensors, and more last numbers of larger ones, than the scratch has room for.
TEST(Cut, ManyOddTensorsAreUpdatedAsIfEachWereAlone) {
  at::manual_seed(3);
  std::vector<at::Tensor> wholes;
  for (int64_t i = 0; i < 900; ++i) wholes.push_back(at::randn({i % 3 == 0 ? 200 + i : 1 + i % 90}));
  for (const char* name : {"SGD", "AdamW"}) {
    const Make make = optimizers().at(name);
    const auto together = trained(wholes, make, 1);
    for (const std::size_t i : {2, 3, 4, 450, 899}) {
      const std::vector<at::Tensor> lone{wholes[i]};
      Views views{whole_view("w." + std::to_string(i), wholes[i].clone())};
      const auto optimizer = make(views);
      for (int step = 0; step < kSteps; ++step) {
        views[0].grad = gradient_of(wholes[i], i, step);
        optimizer->step(at::full({}, 3.0));
      }
      EXPECT_TRUE(views[0].tensor.equal(together[2 * i])) << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace tutti
