#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <regex>

#include "algorithms/surgery/factorize.h"
#include "models/layers/linear.h"
#include "models/zoo/mlp.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kFactorizeFile = "factorize.h5";

int64_t whole(const GoldenCase& c, const char* name) { return static_cast<int64_t>(c.number(name)); }

// Rows of in, out, height and width of the kernel (0: a Linear), and a latent size.
void expect_rules(const GoldenCase& c) {
  c.expect_only({}, {"rows"});
  c.expect_only_outputs({"could_speedup", "latent", "max_rank"});
  std::vector<int64_t> speedups, latents, ranks;
  const at::Tensor rows = c.tensor("in/rows");
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const auto size = [&](int64_t column) { return static_cast<int64_t>(rows[row][column].item<double>()); };
    const double latent = rows[row][4].item<double>();
    const Extent2d kernel(size(2), size(3));
    std::shared_ptr<Layer> layer = std::make_shared<Linear>(size(0), size(1));
    if (kernel.area() > 0)
      layer = std::make_shared<Conv2d>(
          Conv2dOptions{.in_channels = size(0), .out_channels = size(1), .kernel_size = kernel});
    latents.push_back(latent_size(latent, size(0), size(1)));
    ranks.push_back(max_rank_with_possible_speedup(size(0), size(1), kernel.area() > 0 ? kernel : 1));
    speedups.push_back(factorizing_could_speedup(*layer, latent) ? 1 : 0);
  }
  c.expect_close(at::tensor(speedups, at::kByte), "out/could_speedup");
  c.expect_close(at::tensor(latents, at::kLong), "out/latent");
  c.expect_close(at::tensor(ranks, at::kLong), "out/max_rank");
}

// The items of what torch prints of an nn.Sequential.
std::vector<std::string> items_of(const std::string& printed) {
  static const std::regex item(R"(\(\d+\): ([^\n]*\)))");
  std::vector<std::string> items;
  for (std::sregex_iterator found(printed.begin(), printed.end(), item), end; found != end; ++found)
    items.push_back((*found)[1]);
  return items;
}

// The slots and latent sizes of what was replaced, in order.
void expect_replaced(const GoldenCase& c, Layer& model) {
  std::vector<double> replaced, latents;
  for (const auto& one : slots(model)) {
    const Layer& layer = one.slot->layer();
    const auto* linear = dynamic_cast<const FactorizedLinear*>(&layer);
    const auto* conv = dynamic_cast<const FactorizedConv2d*>(&layer);
    if (!linear && !conv) continue;
    replaced.push_back(std::stod(one.name));
    latents.push_back(static_cast<double>(linear ? linear->latent_features() : conv->latent_channels()));
  }
  EXPECT_EQ(replaced, c.numbers("replaced"));
  EXPECT_EQ(latents, c.numbers("latent"));
}

void expect_network(const GoldenCase& c) {
  c.expect_only({"arch_before", "factorize_convs", "factorize_linears", "latent", "latent_channels",
                 "latent_features", "min_channels", "min_features", "replaced"},
                {"grad_y", "weights", "x"});
  c.expect_only_outputs({"grad", "grad_x", "y"});
  SequentialNet net(items_of(c.text("arch_before")));
  const Factorized done = apply_factorization(net, {.factorize_convs = c.number("factorize_convs") != 0,
                                                    .factorize_linears = c.number("factorize_linears") != 0,
                                                    .min_channels = whole(c, "min_channels"),
                                                    .latent_channels = c.number("latent_channels"),
                                                    .min_features = whole(c, "min_features"),
                                                    .latent_features = c.number("latent_features")});
  EXPECT_EQ(static_cast<size_t>(done.convs + done.linears), c.numbers("replaced").size());
  expect_replaced(c, net);
  materialise(net, 1);
  load_weights(c, net);
  const at::Tensor x = c.tensor("in/x").requires_grad_();
  const at::Tensor y = net.forward(TensorTree::Children{{"input", x}}).tensor();
  c.expect_close(y.detach(), "out/y");
  y.backward(c.tensor("in/grad_y"));
  c.expect_close(x.grad(), "out/grad_x");
  for (const auto& one : parameters(net))
    c.expect_close(one.parameter->tensor.grad(), "out/grad/" + one.name);
}

// The matrices [in, rank] and [rank, out] of a solution, or of a case's; an undefined one is a layer in one.
struct Factors {
  at::Tensor a, b;
  at::Tensor product() const { return b.defined() ? a.matmul(b) : a; }
};

Factors factors_of(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() == 2) return {a, b};
  return {a.flatten(1).t(), b.defined() ? b.flatten(1).t() : b};
}

// The signs of singular vectors are anybody's choice: here those of the expected ones.
void expect_solution(const GoldenCase& c, const LowRankSolution& found) {
  std::set<std::string> outputs = {"Wa", "nmse", "product", "rank"};
  if (found.Wb.defined()) outputs.insert("Wb");
  if (found.bias.defined()) outputs.insert("bias");
  c.expect_only_outputs(outputs);
  const Factors got = factors_of(found.Wa, found.Wb);
  const at::Tensor product = c.tensor("out/product");
  c.expect_close(product.dim() == 2 ? got.product() : got.product().t().reshape(product.sizes()),
                 "out/product");
  if (found.bias.defined()) c.expect_close(found.bias, "out/bias");
  c.expect_close(at::tensor({found.rank}, at::kLong), "out/rank");
  c.expect_close(at::tensor({found.nmse}, at::kDouble), "out/nmse");
  if (!found.Wb.defined()) return c.expect_close(found.Wa, "out/Wa");
  const at::Tensor signs = (got.a * factors_of(c.tensor("out/Wa"), {}).a).sum(0).sign();
  const bool is_conv = found.Wa.dim() > 2;
  c.expect_close(found.Wa * (is_conv ? signs.view({-1, 1, 1, 1}) : signs), "out/Wa");
  c.expect_close(found.Wb * (is_conv ? signs.view({1, -1, 1, 1}) : signs.unsqueeze(1)), "out/Wb");
}

void expect_matrix(const GoldenCase& c) {
  c.expect_only({"n_iters", "rank"}, {"W", "X", "bias"});
  const at::Tensor x = c.tensor("in/X"), w = c.tensor("in/W");
  const at::Tensor bias = c.holds("in/bias") ? c.tensor("in/bias") : at::Tensor();
  const at::Tensor y = bias.defined() ? x.matmul(w) + bias : x.matmul(w);
  expect_solution(c, factorize_matrix(x, y, w, {}, bias, c.number("rank"), whole(c, "n_iters")));
}

void expect_conv(const GoldenCase& c) {
  c.expect_only({"n_iters", "padding", "rank"}, {"W", "X", "biasA"});
  const at::Tensor bias = c.holds("in/biasA") ? c.tensor("in/biasA") : at::Tensor();
  expect_solution(c, factorize_conv2d(c.tensor("in/X"), {c.tensor("in/W"), {}, bias, {}}, c.number("rank"),
                                      whole(c, "n_iters"), whole(c, "padding")));
}

std::map<std::string, at::Tensor> weights_of(Layer& layer) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& one : parameters(layer)) weights[one.name] = one.parameter->tensor.detach();
  return weights;
}

template <class L>
void expect_lower_rank(const GoldenCase& c, L& layer) {
  c.expect_only_outputs({"bias_after", "product_after", "y_after", "y_before"});
  materialise(layer, 1);
  load_weights(c, layer);
  const at::Tensor x = c.tensor("in/x");
  c.expect_close(layer.forward(x).tensor().detach(), "out/y_before");
  layer.set_rank(x, whole(c, "rank"));
  c.expect_close(layer.forward(x).tensor().detach(), "out/y_after");
  const auto after = weights_of(layer);
  c.expect_close(after.at("module1.weight").flatten(1).matmul(after.at("module0.weight").flatten(1)),
                 "out/product_after");
  c.expect_close(after.at("module1.bias"), "out/bias_after");
}

void expect_linear_rank(const GoldenCase& c) {
  c.expect_only({"in_features", "latent_features", "out_features", "rank"}, {"weights", "x"});
  FactorizedLinear layer(whole(c, "in_features"), whole(c, "out_features"),
                         c.holds("in/weights/module1.bias"), c.number("latent_features"));
  expect_lower_rank(c, layer);
  EXPECT_EQ(layer.latent_features(), whole(c, "rank"));
}

void expect_conv_rank(const GoldenCase& c) {
  c.expect_only({"in_channels", "kernel_size", "latent_channels", "out_channels", "padding", "rank"},
                {"weights", "x"});
  FactorizedConv2d layer({.in_channels = whole(c, "in_channels"),
                          .out_channels = whole(c, "out_channels"),
                          .kernel_size = whole(c, "kernel_size"),
                          .padding = whole(c, "padding")},
                         c.number("latent_channels"));
  expect_lower_rank(c, layer);
  EXPECT_EQ(layer.latent_channels(), whole(c, "rank"));
}

class GoldenFactorize : public testing::TestWithParam<std::string> {};

TEST_P(GoldenFactorize, FactorizesAsComposerDoes) {
  static const std::map<std::string, void (*)(const GoldenCase&)> tests = {
      {"composer.algorithms.factorize.factorize_modules.factorizing_could_speedup", expect_rules},
      {"composer.functional.apply_factorization", expect_network},
      {"composer.algorithms.factorize.factorize_core.factorize_matrix", expect_matrix},
      {"composer.algorithms.factorize.factorize_core.factorize_conv2d", expect_conv},
      {"composer.algorithms.factorize.FactorizedLinear.set_rank", expect_linear_rank},
      {"composer.algorithms.factorize.FactorizedConv2d.set_rank", expect_conv_rank}};
  const GoldenCase c(golden_path(kFactorizeFile), GetParam());
  known(tests, c.text("composer_api"), "function")(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFactorize, testing::ValuesIn(golden_cases(golden_path(kFactorizeFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenFactorize);

}  // namespace
}  // namespace tutti
