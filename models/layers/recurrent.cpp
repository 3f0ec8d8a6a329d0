#include "models/layers/recurrent.h"

#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "models/layers/drops.h"
#include "models/layers/linear.h"
#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {
Recurrent::Recurrent(const RecurrentOptions& options, int64_t gates) : options_(options) {
  const int64_t hidden = options.hidden_size, rows = gates * hidden;
  const Init init = kaiming_uniform_init(hidden);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const int64_t inputs = layer == 0 ? options.input_size : hidden * directions();
    for (int64_t direction = 0; direction < directions(); ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      add_parameter("weight_ih" + suffix, {rows, inputs}, init);
      add_parameter("weight_hh" + suffix, {rows, hidden}, init);
      if (!options.bias) continue;
      add_parameter("bias_ih" + suffix, {rows}, init);
      add_parameter("bias_hh" + suffix, {rows}, init);
    }
  }
}

TensorTree Recurrent::forward(const TensorTree& input) {
  at::Tensor x = input.tensor();
  // oneDNN's kernels check no sizes.
  if (x.dim() != 3 || x.size(2) != options_.input_size)
    throw UserError("expected an input [N, T, " + std::to_string(options_.input_size) + "], found " +
                    shape_text(x.sizes()));
  const auto& all = own_parameters();
  const std::size_t weights_of_layer = all.size() / static_cast<std::size_t>(options_.num_layers);
  const at::Tensor state =
      at::zeros({directions(), x.size(0), options_.hidden_size}, all.front()->tensor.options());
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    std::vector<at::Tensor> weights;
    for (std::size_t i = 0; i < weights_of_layer; ++i)
      weights.push_back(all[static_cast<std::size_t>(layer) * weights_of_layer + i]->tensor);
    x = one_layer(x.to(state.scalar_type()), state, weights);
    if (layer + 1 < options_.num_layers) x = dropped(context(), x, options_.dropout);
  }
  return x;
}

at::Tensor LSTM::one_layer(const at::Tensor& x, const at::Tensor& state,
                           const std::vector<at::Tensor>& weights) const {
  return std::get<0>(at::lstm(x, {state, state}, weights, options().bias, /*num_layers=*/1, /*dropout=*/0.0,
                              context().training, options().bidirectional, /*batch_first=*/true));
}

at::Tensor GRU::one_layer(const at::Tensor& x, const at::Tensor& state,
                          const std::vector<at::Tensor>& weights) const {
  return std::get<0>(at::gru(x, state, weights, options().bias, /*num_layers=*/1, /*dropout=*/0.0,
                             context().training, options().bidirectional, /*batch_first=*/true));
}

}  // namespace tutti
