#include "models/layers/gpt_block.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"
#include "models/layers/dropout.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"

namespace tutti {

GptMlp::GptMlp(int64_t features, double dropout, double output_deviation)
    : c_fc_(add_slot("c_fc", std::make_shared<Conv1D>(features, 4 * features))),
      act_(add_slot("act", std::make_shared<GELU>())),
      c_proj_(add_slot("c_proj", std::make_shared<Conv1D>(4 * features, features, output_deviation))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(dropout))) {}

TensorTree GptMlp::forward(const TensorTree& input) { return dropout_(c_proj_(act_(c_fc_(input)))); }

GptBlock::GptBlock(const CausalSelfAttention::Options& options)
    : ln_1_(add_slot("ln_1", std::make_shared<LayerNorm>(options.features))),
      attn_(add_slot("attn", std::make_shared<CausalSelfAttention>(options))),
      ln_2_(add_slot("ln_2", std::make_shared<LayerNorm>(options.features))),
      mlp_(add_slot("mlp",
                    std::make_shared<GptMlp>(options.features, options.dropout, options.output_deviation))) {}

TensorTree GptBlock::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor attended = x + attn_(ln_1_(x));
  return attended + mlp_(ln_2_(attended));
}

}  // namespace tutti
