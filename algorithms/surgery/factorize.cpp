#include "algorithms/surgery/factorize.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/surgery/effect.h"
#include "models/layers/linear.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

namespace {

at::Tensor least_squares(const at::Tensor& a, const at::Tensor& b) {
  return std::get<0>(at::linalg_lstsq(a, b));
}

std::pair<at::Tensor, at::Tensor> singular_factors(const at::Tensor& w, int64_t rank) {
  const auto [u, s, vt] = at::linalg_svd(w, /*full_matrices=*/false);
  const at::Tensor root = s.narrow(0, 0, rank).sqrt();
  return {u.narrow(1, 0, rank) * root, vt.narrow(0, 0, rank) * root.unsqueeze(1)};
}

// [N, C, H, W] to the numbers under the kernel at each place, [N places, C kernel].
at::Tensor patches(const at::Tensor& images, at::IntArrayRef kernel, const Extent2d& padding) {
  const at::Tensor columns = at::im2col(images, kernel, {1, 1}, padding.dims(), {1, 1}).transpose(1, 2);
  return columns.reshape({-1, columns.size(2)});
}

at::Tensor matrix_of(const at::Tensor& weight) { return weight.reshape({weight.size(0), -1}).t(); }

at::Tensor weight_of(const at::Tensor& matrix, at::IntArrayRef kernel) {
  if (!matrix.defined()) return matrix;
  return matrix.t().reshape({matrix.size(1), -1, kernel[0], kernel[1]});
}

at::Tensor plus(const at::Tensor& y, const at::Tensor& bias) { return bias.defined() ? y + bias : y; }

}  // namespace

LowRankSolution factorize_matrix(const at::Tensor& x, const at::Tensor& y, const at::Tensor& Wa,
                                 const at::Tensor& Wb, const at::Tensor& bias, double rank, int64_t n_iters) {
  const at::NoGradGuard no_grad;
  const int64_t in = x.size(1), part = static_cast<int64_t>(rank * static_cast<double>(in));
  const int64_t k = rank < 1 ? std::min(part, Wa.size(1)) : static_cast<int64_t>(rank);
  const at::Tensor target = bias.defined() ? y - bias : y;
  if (k >= in || k >= y.size(1)) return {.Wa = least_squares(x, target), .bias = bias};
  if (k >= Wa.size(1)) return {.Wa = Wa, .Wb = Wb, .bias = bias};
  auto [a, b] = singular_factors(Wb.defined() ? at::matmul(Wa, Wb) : Wa, k);
  const at::Tensor best = least_squares(x, target);
  for (int64_t i = 0; i < n_iters; ++i) {
    b = least_squares(at::matmul(x, a), target);
    a = least_squares(b.t(), best.t()).t();
  }
  const at::Tensor fitted = at::matmul(at::matmul(x, a), b);
  const at::Tensor shift = plus((target - fitted).mean(0), bias);
  const double error = (target - (fitted + shift)).square().mean().item<double>();
  return {.Wa = a, .Wb = b, .bias = shift, .rank = k, .nmse = error / target.var().item<double>()};
}

LowRankSolution factorize_conv2d(const at::Tensor& x, const ConvFactors& factors, double rank,
                                 int64_t n_iters, Extent2d padding) {
  if (factors.biasB.defined() && !factors.Wb.defined())
    throw UserError("factorize_conv2d: biasB belongs to Wb, which is not given");
  const at::NoGradGuard no_grad;
  const at::IntArrayRef kernel = factors.Wa.sizes().slice(2);
  const at::Tensor rows = patches(x, kernel, padding), a = matrix_of(factors.Wa);
  const at::Tensor b = factors.Wb.defined() ? matrix_of(factors.Wb) : at::Tensor();
  at::Tensor y = plus(at::matmul(rows, a), factors.biasA);
  if (b.defined()) y = plus(at::matmul(y, b), factors.biasB);
  LowRankSolution solution = factorize_matrix(rows, y, a, b, {}, rank, n_iters);
  solution.Wa = weight_of(solution.Wa, kernel);
  solution.Wb = weight_of(solution.Wb, {1, 1});
  return solution;
}

namespace {

// torch.nn.Conv2d's initial values, in place of torchvision's.
std::shared_ptr<Conv2d> fresh_conv(const Conv2dOptions& options) {
  auto conv = std::make_shared<Conv2d>(options);
  conv->weight().init = kaiming_uniform_init(options.in_channels * options.kernel_size.area());
  return conv;
}

Conv2dOptions first_of(Conv2dOptions options, int64_t latent) {
  options.out_channels = latent;
  options.bias = false;
  return options;
}

Conv2dOptions second_of(int64_t latent, int64_t out) {
  return {.in_channels = latent, .out_channels = out, .bias = true};
}

at::Tensor bias_of(const Parameter* bias) { return bias ? bias->tensor : at::Tensor(); }

void give(Parameter& parameter, const at::Tensor& values) {
  parameter.tensor = values.detach().contiguous().requires_grad_(parameter.trained);
}

// False if the rank is as high as it was.
bool lowers(int64_t rank, int64_t latent) {
  if (rank < 1 || rank > latent)
    throw UserError("rank = " + std::to_string(rank) + ": expected 1 to " + std::to_string(latent) +
                    ", the latent size as it is");
  return rank < latent;
}

// Other surgery may have wrapped the layer.
template <class L>
const L& layer_as(const Slot& slot) {
  for (const auto& [name, layer] : layers(slot.layer()))
    if (const auto* typed = dynamic_cast<const L*>(layer)) return *typed;
  throw UserError(std::string("factorized layers: expected a Linear or a Conv2d, found ") +
                  slot.layer().kind());
}

}  // namespace

int64_t latent_size(double latent, int64_t in, int64_t out) {
  if (latent >= 1) return static_cast<int64_t>(latent);
  return std::max<int64_t>(1, static_cast<int64_t>(latent * static_cast<double>(std::min(in, out))));
}

int64_t max_rank_with_possible_speedup(int64_t in, int64_t out, const Extent2d& kernel_size) {
  const auto fan_in = static_cast<double>(in * kernel_size.area()), width = static_cast<double>(out);
  return static_cast<int64_t>(std::ceil(fan_in * width / (fan_in + width) - 1));
}

bool factorizing_could_speedup(const Layer& layer, double latent) {
  if (const auto* linear = dynamic_cast<const Linear*>(&layer)) {
    const int64_t in = linear->in_features(), out = linear->out_features();
    return latent_size(latent, in, out) <= max_rank_with_possible_speedup(in, out);
  }
  if (const auto* conv = dynamic_cast<const Conv2d*>(&layer)) {
    const Conv2dOptions& o = conv->options();
    return o.groups == 1 && latent_size(latent, o.in_channels, o.out_channels) <=
                                max_rank_with_possible_speedup(o.in_channels, o.out_channels, o.kernel_size);
  }
  const auto is_lower = [&](int64_t latent_now, int64_t in, int64_t out) {
    return latent_size(latent, in, out) < latent_now;
  };
  const auto slot = [&](std::size_t index) -> const Slot& { return *layer.slots().at(index); };
  if (const auto* pair = dynamic_cast<const FactorizedLinear*>(&layer))
    return is_lower(pair->latent_features(), layer_as<Linear>(slot(0)).in_features(),
                    layer_as<Linear>(slot(1)).out_features());
  if (const auto* pair = dynamic_cast<const FactorizedConv2d*>(&layer))
    return is_lower(pair->latent_channels(), layer_as<Conv2d>(slot(0)).options().in_channels,
                    layer_as<Conv2d>(slot(1)).options().out_channels);
  return false;
}

FactorizedLinear::FactorizedLinear(int64_t in, int64_t out, bool bias, double latent)
    : module0_(add_slot("module0", std::make_shared<Linear>(in, latent_size(latent, in, out), false))),
      module1_(add_slot("module1", std::make_shared<Linear>(latent_size(latent, in, out), out, bias))) {}

TensorTree FactorizedLinear::forward(const TensorTree& input) { return module1_(module0_(input)); }

int64_t FactorizedLinear::latent_features() const { return layer_as<Linear>(module0_).out_features(); }

void FactorizedLinear::set_rank(const at::Tensor& input, int64_t rank) {
  if (!lowers(rank, latent_features())) return;
  const at::NoGradGuard no_grad;
  const Linear &first = layer_as<Linear>(module0_), &second = layer_as<Linear>(module1_);
  const LowRankSolution solution =
      factorize_matrix(input, module1_(module0_(input)), first.weight().tensor.t(),
                       second.weight().tensor.t(), bias_of(second.bias()), static_cast<double>(rank));
  const auto lower = std::make_shared<Linear>(first.in_features(), rank, false);
  const auto upper = std::make_shared<Linear>(rank, second.out_features());
  give(lower->weight(), solution.Wa.t());
  give(upper->weight(), solution.Wb.t());
  give(*upper->bias(), solution.bias);
  module0_.fill(lower);
  module1_.fill(upper);
}

FactorizedConv2d::FactorizedConv2d(const Conv2dOptions& options, double latent)
    : module0_(add_slot("module0", fresh_conv(first_of(options, latent_size(latent, options.in_channels,
                                                                            options.out_channels))))),
      module1_(add_slot("module1", fresh_conv(second_of(latent_channels(), options.out_channels)))) {
  TUTTI_ASSERT(options.groups == 1, "a grouped convolution cannot be factorized");
}

TensorTree FactorizedConv2d::forward(const TensorTree& input) { return module1_(module0_(input)); }

int64_t FactorizedConv2d::latent_channels() const {
  return layer_as<Conv2d>(module0_).options().out_channels;
}

void FactorizedConv2d::set_rank(const at::Tensor& input, int64_t rank) {
  if (!lowers(rank, latent_channels())) return;
  const Conv2d &first = layer_as<Conv2d>(module0_), &second = layer_as<Conv2d>(module1_);
  if (&first != &module0_.layer() || first.options().stride != 1 || first.options().dilation != 1)
    throw UserError("set_rank: the convolution has a stride or a dilation other than 1");
  const LowRankSolution solution =
      factorize_conv2d(input, {first.kernel(), second.kernel(), {}, second.bias()->tensor},
                       static_cast<double>(rank), 3, first.options().padding);
  const auto lower = fresh_conv(first_of(first.options(), rank));
  const auto upper = fresh_conv(second_of(rank, second.options().out_channels));
  give(lower->weight(), solution.Wa);
  give(upper->weight(), solution.Wb);
  give(*upper->bias(), solution.bias);
  module0_.fill(lower);
  module1_.fill(upper);
}

Factorized apply_factorization(Layer& model, const FactorizeOptions& options) {
  Factorized done;
  replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const Layer& layer = named.slot->layer();
    const auto* conv = options.factorize_convs ? dynamic_cast<const Conv2d*>(&layer) : nullptr;
    const auto* linear = options.factorize_linears ? dynamic_cast<const Linear*>(&layer) : nullptr;
    if (conv && std::min(conv->options().in_channels, conv->options().out_channels) >= options.min_channels &&
        factorizing_could_speedup(layer, options.latent_channels)) {
      ++done.convs;
      return std::make_shared<FactorizedConv2d>(conv->options(), options.latent_channels);
    }
    if (linear && std::min(linear->in_features(), linear->out_features()) >= options.min_features &&
        factorizing_could_speedup(layer, options.latent_features)) {
      ++done.linears;
      return std::make_shared<FactorizedLinear>(linear->in_features(), linear->out_features(),
                                                linear->bias() != nullptr, options.latent_features);
    }
    return nullptr;
  });
  return done;
}

void Factorize::apply(Event, State& state, Logger& logger) {
  const Factorized done = apply_factorization(*state.model, options_);
  if (options_.factorize_convs)
    logger.log_hyperparameters({{"factorize/num_conv2d_replacements", int64_t{done.convs}}});
  if (options_.factorize_linears)
    logger.log_hyperparameters({{"factorize/num_linear_replacements", int64_t{done.linears}}});
  warn_without_effect(state, done.convs + done.linears, name(),
                      "Conv2d and no Linear that is wide enough (min_channels, min_features) and would be "
                      "faster in two (latent_channels, latent_features)");
}

AlgorithmPtr FactorizeAlgorithm::make(const Setting&) const { return std::make_shared<Factorize>(*this); }

}  // namespace tutti
