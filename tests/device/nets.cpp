#include "tests/device/nets.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>

namespace tutti::test_device {

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensors initial(Net net) {
  const auto random = [](std::vector<int64_t> sizes) { return at::randn(sizes) * 0.1; };
  switch (net) {
    case Net::kMlp:
      return {random({32, 16}), random({32}), random({32, 32}), random({32}), random({10, 32}), random({10})};
    case Net::kConv:
      return {random({8, 3, 3, 3}), at::ones({8}),   at::zeros({8}),   random({16, 8, 3, 3}),
              at::ones({16}),       at::zeros({16}), random({10, 16}), at::zeros({10})};
    case Net::kGpt:
      return {random({50, 32}), random({16, 32}), at::ones({32}),    at::zeros({32}),
              random({96, 32}), random({32, 32}), random({128, 32}), random({32, 128})};
  }
  return {};
}

Tensor mlp(const Tensors& p, const Tensor& x) {
  const Tensor h = at::relu(at::linear(x, p[0], p[1]));
  return at::linear(at::gelu(at::linear(h, p[2], p[3])), p[4], p[5]);
}

Tensor normalized(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor mean = at::zeros_like(weight.detach()), variance = at::ones_like(mean);
  return std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, /*training=*/true, 0.1, 1e-5));
}

Tensor conv(const Tensors& p, const Tensor& x) {
  Tensor h = at::relu(normalized(at::conv2d(x, p[0], {}, 1, 1), p[1], p[2]));
  h = at::max_pool2d(h, 2);
  h = at::relu(normalized(at::conv2d(h, p[3], {}, 2, 1), p[4], p[5]));
  return at::linear(at::adaptive_avg_pool2d(h, {1, 1}).flatten(1), p[6], p[7]);
}

Tensor gpt(const Tensors& p, const Tensor& x) {
  const auto heads = [](const Tensor& t) { return t.view({t.size(0), t.size(1), 4, 8}).transpose(1, 2); };
  Tensor h = at::embedding(p[0], x) + at::embedding(p[1], at::arange(x.size(1), x.options()));
  const auto qkv = at::linear(at::layer_norm(h, {32}, p[2], p[3]), p[4]).split(32, -1);
  const Tensor attended =
      at::scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, 0.0,
                                       /*is_causal=*/true);
  h = h + at::linear(attended.transpose(1, 2).reshape(h.sizes()), p[5]);
  h = h + at::linear(at::gelu(at::linear(h, p[6])), p[7]);
  return at::linear(h, p[0]).view({-1, 50});
}

Tensor loss_of(Net net, const Tensors& p, const Tensor& x, const Tensor& y) {
  const Tensor logits = net == Net::kMlp ? mlp(p, x) : net == Net::kConv ? conv(p, x) : gpt(p, x);
  return at::cross_entropy_loss(logits, y.reshape({-1}));
}

struct Batch {
  Tensor x, y;
};

Batch batch_of(Net net) {
  if (net == Net::kGpt) return {at::randint(50, {2, 16}, at::kLong), at::randint(50, {2, 16}, at::kLong)};
  return {net == Net::kMlp ? at::randn({8, 16}) : at::randn({4, 3, 8, 8}),
          at::randint(10, {net == Net::kMlp ? 8 : 4}, at::kLong)};
}

// AdamW with everything that CUDA's kernel reads by address on the device.
struct Optimizer {
  explicit Optimizer(const Tensors& params) {
    const auto number = params[0].options().requires_grad(false);
    for (const Tensor& one : params) {
      values.push_back(one.detach());
      means.push_back(at::zeros_like(values.back()));
      squares.push_back(at::zeros_like(values.back()));
      steps.push_back(at::zeros({}, number));
    }
    scale = at::ones({}, number);
    found_inf = at::zeros({}, number);
  }
  void step(Tensors& params) {
    Tensors gradients;
    for (const Tensor& one : params) gradients.push_back(one.grad());
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(values, gradients, means, squares, {}, steps, 1e-2, 0.9, 0.999, 0.01, 1e-8, false,
                      false, scale, found_inf);
    for (Tensor& one : params) one.mutable_grad() = Tensor();
  }
  Tensors values, means, squares, steps;
  Tensor scale, found_inf;
};

class Autocast {
 public:
  Autocast(c10::DeviceType type, std::optional<c10::ScalarType> dtype) : type_(type), on_(dtype.has_value()) {
    if (!on_) return;
    at::autocast::set_autocast_enabled(type, true);
    at::autocast::set_autocast_dtype(type, *dtype);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~Autocast() {
    if (on_) at::autocast::set_autocast_enabled(type_, false);
  }

 private:
  c10::DeviceType type_;
  bool on_;
};

}  // namespace

std::vector<at::Tensor> train(c10::Device device, const Training& training) {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  at::set_num_threads(1);
  at::manual_seed(7);
  Tensors params;
  for (const Tensor& one : initial(training.net))
    params.push_back(one.to(device).detach().requires_grad_(true));
  Optimizer optimizer(params);
  Tensors results;
  for (int step = 0; step < training.steps; ++step) {
    const Batch batch = batch_of(training.net);
    const Tensor x = batch.x.to(device), y = batch.y.to(device);
    Tensor loss;
    {
      const Autocast autocast(device.type(), training.autocast);
      loss = loss_of(training.net, params, x, y);
    }
    loss.backward();
    const at::NoGradGuard no_grad;
    optimizer.step(params);
    results.push_back(loss.detach());
  }
  for (const Tensor& one : params) results.push_back(one.detach());
  for (Tensor& one : results) one = one.cpu();
  return results;
}

}  // namespace tutti::test_device
