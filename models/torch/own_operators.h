#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/layer.h"
#include "models/torch/norms.h"

namespace tutti {

// A pass through the code of an exported program, a script or a torch::nn::Module. While the object lives,
// some of libtorch's operators are tutti's on this thread:
// - dropout, feature dropout, bernoulli_ and attention with dropout draw by the places of samples, and in
//   training alone, as do alpha dropout and bernoulli by their call of bernoulli_ (unless `direct`);
// - batch norm with buffers of `norms` leaves its statistics to `finish` and writes no buffer;
// - LSTM, GRU, RNN and RReLU are in training with the layer.
// Within LSTM, GRU and RNN all is libtorch's. Passes nest: of another layer, or of the same.
class OwnOperators {
 public:
  // `always`: operators that say that they are in evaluation are in training too, with the layer. `direct`:
  // numbers of operators that call bernoulli_ are of libtorch's generator, as programs have had them so far.
  OwnOperators(Layer& layer, const Norms& norms, bool always = false, bool direct = false);
  ~OwnOperators();
  OwnOperators(const OwnOperators&) = delete;

  // Puts the statistics of the pass into the layer's context.
  void finish();

  // To be called where a layer is made: operators are registered once a process, before other threads run
  // any.
  static void prepare();

  class Pass;

 private:
  Layer& layer_;
  const Norms& norms_;
  bool always_, direct_;
  std::vector<at::Tensor> statistics_;  // of a norm each
  OwnOperators* outer_;
};

}  // namespace tutti
