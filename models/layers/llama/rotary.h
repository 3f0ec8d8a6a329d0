#pragma once

#include <optional>
#include <string>

#include "models/layers/layer.h"

namespace tutti {

// Rotary positions (Su et al., 2021, arXiv:2104.09864), scaled as transformers' modeling_rope_utils does.
struct RotaryOptions {
  std::string type = "default";  // or "linear", "dynamic", "llama3", "yarn"
  double theta = 10000.0;
  int64_t features = 0;                                    // of a head; even
  double factor = 1.0;                                     // of all types but the default
  int64_t max_positions = 0;                               // dynamic: longer sequences are scaled
  int64_t original_max_positions = 0;                      // llama3, yarn
  double low_freq_factor = 1.0, high_freq_factor = 4.0;    // llama3
  double beta_fast = 32.0, beta_slow = 1.0;                // yarn
  std::optional<double> attention_factor = {};             // yarn; else by the factors
  std::optional<double> mscale = {}, mscale_all_dim = {};  // yarn
  bool truncate = true;                                    // yarn
};

// The angles of positions: int64 [T] or [N, T] to a tree of "cos" and "sin", float32 [..., features / 2],
// times the attention factor. The frequencies of "dynamic" follow the pass's longest sequence. transformers'
// LlamaRotaryEmbedding; "inv_freq" is not saved, as there.
class RotaryEmbedding final : public Layer {
 public:
  explicit RotaryEmbedding(RotaryOptions options);
  TensorTree forward(const TensorTree& positions) override;
  const char* kind() const override { return "LlamaRotaryEmbedding"; }
  const RotaryOptions& options() const { return options_; }

 private:
  RotaryOptions options_;
  double attention_factor_;
  Buffer& frequencies_;
};

// [features / 2], float32 on the CPU. `length`: of the pass's longest sequence, for "dynamic".
at::Tensor rotary_frequencies(const RotaryOptions& options, int64_t length = 0);

}  // namespace tutti
