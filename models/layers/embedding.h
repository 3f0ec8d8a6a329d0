#pragma once

#include "models/layers/layer.h"

namespace tutti {

// A table of token embeddings, [tokens, features], with a token for padding: its row starts at zero, and gets
// no gradient. torch.nn.Embedding with padding_idx; starts normal.
class TokenEmbedding final : public Layer {
 public:
  TokenEmbedding(int64_t tokens, int64_t features, int64_t padding, double standard_deviation = 0.02);
  TensorTree forward(const TensorTree& indices) override;
  const char* kind() const override { return "TokenEmbedding"; }

 private:
  Parameter& weight_;
  int64_t padding_;
};

// A table "weight" [positions, features] of position embeddings, looked up by integer index. A table limits
// the length of a model's sequences (`longest_sequence`); algorithms that replace positions (Alibi) find the
// tables of any model by this class.
class PositionTable : public Layer {
 public:
  TensorTree forward(const TensorTree& indices) override;
  int64_t positions() const { return table().size(0); }
  int64_t features() const { return table().size(1); }

 private:
  virtual const at::Tensor& table() const = 0;
};

// A table that is trained; starts normal.
class LearnedPositions final : public PositionTable {
 public:
  LearnedPositions(int64_t positions, int64_t features, double standard_deviation = 0.02);
  const char* kind() const override { return "LearnedPositions"; }

 private:
  const at::Tensor& table() const override { return weight_.tensor; }

  Parameter& weight_;
};

// An untrained table of zeros in place of positions. The table is saved, for programs that expect a table;
// the layer returns zeros even if other values are loaded.
class ZeroPositions final : public PositionTable {
 public:
  ZeroPositions(int64_t positions, int64_t features);
  TensorTree forward(const TensorTree& indices) override;
  const char* kind() const override { return "ZeroPositions"; }

 private:
  const at::Tensor& table() const override { return weight_.tensor; }

  Buffer& weight_;
};

// An output layer whose weights are a table of embeddings.
class TiedOutput : public Layer {
 public:
  // Gives the layer weights of its own, which start as the table does and are not trained. Call materialise
  // afterwards.
  virtual void untie() = 0;
};

}  // namespace tutti
