#pragma once

#include "models/layers/layer.h"

namespace tutti {

// torch.nn.LSTM's and GRU's arguments.
struct RecurrentOptions {
  int64_t input_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0.0;  // of the outputs of each layer but the last, by the places of samples
  bool bidirectional = false;
};

// A recurrent network over sequences [N, T, input_size], from a state of zeros. Returns the last layer's
// outputs [N, T, hidden_size], of both directions [N, T, 2 hidden_size]. Names ("weight_ih_l0",
// "bias_hh_l1_reverse"), layouts and initial values are torch.nn's with batch_first=True.
class Recurrent : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const RecurrentOptions& options() const { return options_; }

 protected:
  // `gates`: rows of the weights for each hidden number.
  Recurrent(const RecurrentOptions& options, int64_t gates);

 private:
  int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  // One layer, in both directions if there are two. `weights`: torch's flat list.
  virtual at::Tensor one_layer(const at::Tensor& x, const at::Tensor& state,
                               const std::vector<at::Tensor>& weights) const = 0;

  RecurrentOptions options_;
};

// Hochreiter and Schmidhuber, 1997; torch.nn.LSTM.
class LSTM final : public Recurrent {
 public:
  explicit LSTM(const RecurrentOptions& options) : Recurrent(options, 4) {}
  const char* kind() const override { return "LSTM"; }

 private:
  at::Tensor one_layer(const at::Tensor& x, const at::Tensor& state,
                       const std::vector<at::Tensor>& weights) const override;
};

// Cho et al., 2014; torch.nn.GRU.
class GRU final : public Recurrent {
 public:
  explicit GRU(const RecurrentOptions& options) : Recurrent(options, 3) {}
  const char* kind() const override { return "GRU"; }

 private:
  at::Tensor one_layer(const at::Tensor& x, const at::Tensor& state,
                       const std::vector<at::Tensor>& weights) const override;
};

}  // namespace tutti
