#include "models/generation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "models/model.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kAscii = 128;
constexpr int64_t kBytes = 256;

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

// The place at which the cumulated probability passes `uniform`, a part of the last.
int64_t place_in(const at::Tensor& cumulated, double uniform) {
  const int64_t place = (cumulated <= uniform).sum().item<int64_t>();
  return std::min(place, cumulated.size(0) - 1);
}

int64_t draw_token(const at::Tensor& scores, const GenerationOptions& options, double uniform) {
  const at::Tensor wide = scores.to(at::kDouble);
  if (!options.do_sample) return wide.argmax().item<int64_t>();
  const at::Tensor tempered = wide / options.temperature;
  const int64_t all = tempered.size(0);
  const int64_t most = options.top_k > 0 ? std::min(options.top_k, all) : all;
  if (most == all && options.top_p >= 1.0) return place_in(tempered.softmax(0).cumsum(0), uniform);
  const auto [sorted, tokens] = at::sort(tempered, std::optional<bool>(true), 0, /*descending=*/true);
  const at::Tensor cumulated = sorted.narrow(0, 0, most).softmax(0).cumsum(0);
  const int64_t reached = (cumulated < options.top_p).sum().item<int64_t>() + 1;
  const at::Tensor kept = cumulated.narrow(0, 0, std::min(reached, most));
  return tokens[place_in(kept, uniform * kept[-1].item<double>())].item<int64_t>();
}

int64_t seen_of(const Tokens& row, int64_t window) { return std::min<int64_t>(window, std::ssize(row)); }

// The last tokens of each row, [N, T]; short rows are filled up at their ends, which no earlier token sees.
at::Tensor seen_tokens(const std::vector<Tokens>& rows, int64_t window) {
  int64_t longest = 0;
  for (const Tokens& row : rows) longest = std::max(longest, seen_of(row, window));
  at::Tensor tokens = at::zeros({std::ssize(rows), longest}, at::kLong);
  int64_t* to = tokens.data_ptr<int64_t>();
  for (const Tokens& row : rows) {
    std::copy(row.end() - seen_of(row, window), row.end(), to);
    to += longest;
  }
  return tokens;
}

}  // namespace

bool tokens_are_bytes(int64_t vocabulary) { return vocabulary >= kAscii && vocabulary <= kBytes; }

std::vector<Tokens> generate_causally(Model& model, int64_t window, const std::vector<Prompt>& prompts,
                                      const GenerationOptions& options) {
  const at::NoGradGuard no_grad;
  const Evaluating evaluating(model);
  std::vector<Tokens> rows;
  for (const Prompt& prompt : prompts) {
    TUTTI_ASSERT(!prompt.tokens.empty(), "a prompt of no tokens");
    rows.push_back(prompt.tokens);
  }
  for (int64_t i = 0; i < options.max_new_tokens && !rows.empty(); ++i) {
    if (options.each_token) options.each_token();
    const Batch batch = TensorTree::Children{{"input", seen_tokens(rows, window)}};
    const at::Tensor scores = model.forward(batch).tensor();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const at::Tensor next = scores[static_cast<int64_t>(r)][seen_of(rows[r], window) - 1];
      rows[r].push_back(draw_token(next, options, prompts[r].draws.uniform(static_cast<uint64_t>(i))));
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r].erase(rows[r].begin(), rows[r].begin() + std::ssize(prompts[r].tokens));
  return rows;
}

}  // namespace tutti
