#include "tests/models/torch/adapted_nets.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "models/torch/torch_module.h"

namespace tutti {
namespace {

struct Net : torch::nn::Module {
  explicit Net(const AdaptedNet& options)
      : options(options),
        conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(6))),
        drop(register_module("drop", torch::nn::Dropout(options.dropout))),
        hidden(register_module("hidden", torch::nn::Linear(6 * 16, 12))),
        last_norm(register_module("last_norm", torch::nn::BatchNorm1d(12))),
        head(register_module("head", torch::nn::Linear(12, 3))),
        scale(register_buffer("scale", torch::full({12}, 0.5))) {
    if (!options.frozen_norms) return;
    norm->eval();
    last_norm->eval();
  }
  torch::Tensor forward(torch::Tensor x) {
    x = drop(torch::relu(norm(conv(x)))).flatten(1);
    if (options.writes_buffer) scale.mul_(0.99);
    return head(torch::tanh(last_norm(hidden(x)) * scale));
  }

  AdaptedNet options;
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::Dropout drop;
  torch::nn::Linear hidden;
  torch::nn::BatchNorm1d last_norm;
  torch::nn::Linear head;
  torch::Tensor scale;
};

}  // namespace

std::shared_ptr<Layer> AdaptedNet::layer() const {
  return adapt([this] { return std::make_shared<Net>(*this); });
}

AdaptedNet::Plain AdaptedNet::plain(const at::Tensor& x, const at::Tensor& probe) const {
  const auto net = [this] {
    const SeededConstruction seeded(0);
    return std::make_shared<Net>(*this);
  }();
  Plain found{.output = net->forward(x)};
  (found.output * probe).sum().backward();
  for (const auto& one : net->named_parameters()) found.gradients.emplace_back(one.key(), one.value().grad());
  for (const auto& one : net->named_buffers()) found.buffers.emplace_back(one.key(), one.value());
  return found;
}

}  // namespace tutti
