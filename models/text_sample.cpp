#include "models/text_sample.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

at::Tensor last_bytes(const std::string& text, int64_t count) {
  const int64_t length = std::min<int64_t>(count, static_cast<int64_t>(text.size()));
  at::Tensor tokens = at::empty({1, length}, at::kLong);
  std::transform(text.end() - length, text.end(), tokens.data_ptr<int64_t>(),
                 [](char c) { return static_cast<unsigned char>(c); });
  return tokens;
}

// The first token at which the cumulated probability passes `uniform`.
int64_t draw_token(const at::Tensor& scores, double temperature, double uniform) {
  if (temperature <= 0.0) return scores.argmax().item<int64_t>();
  const at::Tensor cumulated = (scores.to(at::kDouble) / temperature).softmax(0).cumsum(0);
  const int64_t token = (cumulated <= uniform).sum().item<int64_t>();
  return std::min(token, scores.size(0) - 1);
}

// Evaluation mode for as long as it lives.
class Evaluating {
 public:
  explicit Evaluating(Layer& root) : root_(root), before_(root.context()) { set_context(root, &context_); }
  ~Evaluating() { set_context(root_, &before_); }
  Evaluating(const Evaluating&) = delete;

 private:
  Layer& root_;
  const ForwardContext& before_;
  const ForwardContext context_{.training = false};
};

}  // namespace

std::string sample_text(Gpt& model, const std::string& prompt, const TextSampleOptions& options) {
  TUTTI_ASSERT(model.options().vocab_size <= 256, "the model's tokens are no bytes");
  const at::NoGradGuard no_grad;
  const Evaluating evaluating(model);
  const Draw draws(options.seed, "text sample");
  std::string text = prompt.empty() ? "\n" : prompt;
  const size_t start = text.size();
  for (int64_t i = 0; i < options.length; ++i) {
    const at::Tensor tokens = last_bytes(text, model.options().n_positions);
    const at::Tensor scores = model.forward(TensorTree::Children{{"input", tokens}}).tensor()[0][-1];
    text +=
        static_cast<char>(draw_token(scores, options.temperature, draws.uniform(static_cast<uint64_t>(i))));
  }
  return text.substr(start);
}

}  // namespace tutti
