#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/recipe/section.h"
#include "tests/training/sharded_states.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"

namespace tutti {
namespace {

Setting of_kind(const char* kind) {
  return section_with({{"kind", std::string(kind)}, {"lr", 0.02}, {"weight_decay", 0.1}});
}

// Weights after three steps, of which the last ones have smaller gradients.
std::vector<at::Tensor> trained(const char* kind, int ranks, at::ScalarType dtype) {
  return joined_over_shares(many_parameters(dtype), ranks, [&](State& state) {
    const auto optimizer = make_optimizer(of_kind(kind), state.views);
    optimizer->set_sum_over_shards(state.sum_over_shards());
    for (int step = 0; step < 3; ++step) {
      optimizer->step(at::full({}, 2.0F));
      for (ParamView& view : state.views) view.grad = view.grad.mul(0.9).add(view.tensor.mul(0.1));
    }
    std::vector<at::Tensor> weights;
    for (const ParamView& view : state.views) weights.push_back(view.tensor);
    return weights;
  });
}

TEST(WholeParameters, OfShardsMoveLikeThoseOfOneRank) {
  for (const char* kind : {"lamb", "muon"})
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const auto one = trained(kind, 1, dtype);
      for (const int ranks : {2, 3, 4}) {
        const auto many = trained(kind, ranks, dtype);
        for (std::size_t p = 0; p < one.size(); ++p)
          EXPECT_TRUE(many[p].equal(one[p])) << kind << ", parameter " << p << " on " << ranks;
      }
    }
}

// Their sums over ranks are rounded to float64.
TEST(WholeParameters, OfShardsMoveNearlySoByAdafactor) {
  const auto one = trained("adafactor", 1, at::kFloat);
  for (const int ranks : {2, 3, 4}) {
    const auto many = trained("adafactor", ranks, at::kFloat);
    for (std::size_t p = 0; p < one.size(); ++p)
      EXPECT_TRUE(at::allclose(many[p], one[p], 1e-6, 1e-7)) << "parameter " << p << " on " << ranks;
  }
}

// Factored squares have the sizes of rows or columns of the whole parameter, whatever a rank has of it.
TEST(WholeParameters, HaveStateOfTheirRowsAndColumns) {
  std::vector<WholeParameter> parameters{{"m", at::ones({6, 4}), at::ones({6, 4})},
                                         {"c", at::ones({6, 2, 3, 5}), at::ones({6, 2, 3, 5})},
                                         {"v", at::ones({6}), at::ones({6})}};
  run_on_shares(parameters, 2, [](State& state) {
    const auto optimizer = make_optimizer(of_kind("adafactor"), state.views);
    std::map<std::string, OptimizerState> by_name;
    for (const OptimizerState& one : optimizer->state()) by_name[one.view->name + "/" + one.name] = one;
    EXPECT_EQ(by_name.size(), 3U + 5U);
    const auto expect = [&](const char* name, const Shape& shape, const Shape& own, bool cut) {
      const OptimizerState& one = by_name.at(name);
      EXPECT_EQ(one.shape, shape) << name;
      EXPECT_EQ(one.tensor.sizes(), at::IntArrayRef(own)) << name;
      EXPECT_EQ(one.placement, cut ? row_placement(shape) : Placement()) << name;
    };
    expect("m/row_var", {6, 1}, {3, 1}, true);
    expect("m/col_var", {1, 4}, {1, 4}, false);
    expect("c/row_var", {6, 2, 3, 1}, {3, 2, 3, 1}, true);
    expect("c/col_var", {6, 2, 1, 5}, {3, 2, 1, 5}, true);
    expect("v/variance", {6}, {3}, true);
  });
}

TEST(WholeParametersDeathTest, NeedSumsOverTheRanksThatShareThem) {
  ParamView view = whole_view("w", at::ones({2, 3}));
  view.shape = {4, 3};
  view.grad = at::ones({2, 3});
  std::vector<ParamView> views{view};
  const auto optimizer = make_optimizer(of_kind("lamb"), views);
  EXPECT_DEATH(optimizer->step(), "Lamb needs sums over the ranks that share a parameter");
}

}  // namespace
}  // namespace tutti
