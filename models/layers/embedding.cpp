#include "models/layers/embedding.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/zeros.h>

#include "models/layers/linear.h"

namespace tutti {
namespace {

Init padded_normal_init(double standard_deviation, int64_t padding) {
  return [=, draw = normal_init(standard_deviation)](at::Tensor& tensor, const at::Generator& generator) {
    draw(tensor, generator);
    tensor.select(0, padding).zero_();
  };
}

}  // namespace

TokenEmbedding::TokenEmbedding(int64_t tokens, int64_t features, int64_t padding, double standard_deviation)
    : weight_(add_parameter("weight", {tokens, features}, padded_normal_init(standard_deviation, padding))),
      padding_(padding) {}

TensorTree TokenEmbedding::forward(const TensorTree& indices) {
  return at::embedding(weight_.tensor, indices.tensor(), padding_);
}

TensorTree PositionTable::forward(const TensorTree& indices) {
  return at::embedding(table(), indices.tensor());
}

LearnedPositions::LearnedPositions(int64_t positions, int64_t features, double standard_deviation)
    : weight_(add_parameter("weight", {positions, features}, normal_init(standard_deviation))) {}

ZeroPositions::ZeroPositions(int64_t positions, int64_t features)
    : weight_(add_buffer("weight", {positions, features}, constant_init(0.0))) {
  weight_.constant = true;
}

TensorTree ZeroPositions::forward(const TensorTree& indices) {
  Shape shape = indices.tensor().sizes().vec();
  shape.push_back(features());
  return at::zeros({}, table().options()).expand(shape);
}

}  // namespace tutti
