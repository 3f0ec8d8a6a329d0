#include "models/generation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "models/layers/key_cache.h"
#include "models/losses.h"
#include "models/model.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kAscii = 128;
constexpr int64_t kBytes = 256;
constexpr double kClosingTemperature = 0.8;

// Index at which the cumulative probability exceeds `uniform`, at most the last.
int64_t sample_index(const at::Tensor& cumulative, double uniform) {
  const int64_t index = (cumulative <= uniform).sum().item<int64_t>();
  return std::min(index, cumulative.size(0) - 1);
}

int64_t draw_token(const at::Tensor& scores, const GenerationOptions& options, double uniform) {
  const at::Tensor logits = scores.to(at::kDouble);
  if (!options.do_sample) return logits.argmax().item<int64_t>();
  const at::Tensor tempered = logits / options.temperature;
  const int64_t vocabulary = tempered.size(0);
  const int64_t candidates = options.top_k > 0 ? std::min(options.top_k, vocabulary) : vocabulary;
  if (candidates == vocabulary && options.top_p >= 1.0)
    return sample_index(tempered.softmax(0).cumsum(0), uniform);
  const auto [sorted, tokens] = at::sort(tempered, std::optional<bool>(true), 0, /*descending=*/true);
  const at::Tensor cumulative = sorted.narrow(0, 0, candidates).softmax(0).cumsum(0);
  const int64_t nucleus = (cumulative < options.top_p).sum().item<int64_t>() + 1;
  const at::Tensor kept = cumulative.narrow(0, 0, std::min(nucleus, candidates));
  return tokens[sample_index(kept, uniform * kept[-1].item<double>())].item<int64_t>();
}

// By the function of the loss.
void add_log_probabilities(const at::Tensor& scores, const Tokens& tokens,
                           std::vector<std::vector<double>>& all) {
  const at::Tensor losses = index_cross_entropy(scores, at::tensor(tokens), LossReduction::kNone);
  all.resize(tokens.size());
  for (std::size_t r = 0; r < tokens.size(); ++r)
    all[r].push_back(-losses[static_cast<int64_t>(r)].item<double>());
}

// A model without parameters is on the CPU.
Device device_of(Model& model) {
  const auto all = parameters(model);
  return all.empty() ? Device() : Device{all.front().parameter->tensor.device()};
}

int64_t context_length(const Tokens& row, int64_t window) {
  return std::min<int64_t>(window, std::ssize(row));
}

// The last tokens of each row, [N, T]. Short rows are padded at the end, where causal attention does not
// look.
at::Tensor context_tokens(const std::vector<Tokens>& rows, int64_t window) {
  int64_t longest = 0;
  for (const Tokens& row : rows) longest = std::max(longest, context_length(row, window));
  at::Tensor tokens = at::zeros({std::ssize(rows), longest}, at::kLong);
  int64_t* to = tokens.data_ptr<int64_t>();
  for (const Tokens& row : rows) {
    std::copy(row.end() - context_length(row, window), row.end(), to);
    to += longest;
  }
  return tokens;
}

// The scores of the next tokens, pass by pass.
class Scorer {
 public:
  Scorer(Model& model, const CausalSight& sight, int64_t most_tokens)
      : model_(model),
        sight_(sight),
        device_(device_of(model)),
        most_tokens_(std::min(most_tokens, sight.cached)),
        uses_cache_(sight.cached > 0),
        scope_(model, context_) {}

  // [N, vocabulary], after each row.
  at::Tensor after(const std::vector<Tokens>& rows) {
    uses_cache_ = uses_cache_ && fits(rows);
    return uses_cache_ ? with_cache(rows) : without_cache(rows);
  }

 private:
  bool fits(const std::vector<Tokens>& rows) const {
    return std::ranges::all_of(rows, [&](const Tokens& row) { return std::ssize(row) <= sight_.cached; });
  }

  at::Tensor forward(const at::Tensor& tokens) {
    return model_.forward(Batch(TensorTree::Children{{"input", device_.take(tokens)}})).tensor();
  }

  at::Tensor with_cache(const std::vector<Tokens>& rows) {
    const bool is_first = !cache_;
    if (is_first) cache_ = std::make_unique<KeyCache>(most_tokens_);
    std::vector<int64_t> lengths;
    for (const Tokens& row : rows) lengths.push_back(std::ssize(row));
    cache_->begin_pass(std::move(lengths));
    context_.cache = cache_.get();
    at::Tensor scores = forward(context_tokens(rows, is_first ? sight_.cached : 1)).select(1, 0);
    context_.cache = nullptr;
    uses_cache_ = cache_->layers() == sight_.layers;
    return scores;
  }

  at::Tensor without_cache(const std::vector<Tokens>& rows) {
    cache_.reset();
    const at::Tensor scores = forward(context_tokens(rows, sight_.window));
    std::vector<at::Tensor> last;
    for (std::size_t r = 0; r < rows.size(); ++r)
      last.push_back(scores[static_cast<int64_t>(r)][context_length(rows[r], sight_.window) - 1]);
    return at::stack(last);
  }

  Model& model_;
  CausalSight sight_;
  Device device_;
  int64_t most_tokens_;
  bool uses_cache_;
  ForwardContext context_{.training = false};
  ContextScope scope_;
  std::unique_ptr<KeyCache> cache_;
};

class BytesAsText final : public TokenText {
 public:
  Tokens encode(const std::string& text) const override {
    Tokens tokens;
    for (const char c : text.empty() ? "\n" : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string decode(const Tokens& tokens) const override { return {tokens.begin(), tokens.end()}; }
};

}  // namespace

bool tokens_are_bytes(int64_t vocabulary) { return vocabulary >= kAscii && vocabulary <= kBytes; }

std::vector<Tokens> generate_causally(Model& model, const CausalSight& sight,
                                      const std::vector<Prompt>& prompts, const GenerationOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<Tokens> rows;
  int64_t longest = 0;
  for (const Prompt& prompt : prompts) {
    TUTTI_ASSERT(!prompt.tokens.empty(), "a prompt of no tokens");
    rows.push_back(prompt.tokens);
    longest = std::max<int64_t>(longest, std::ssize(prompt.tokens));
  }
  Scorer scorer(model, sight, longest + options.max_new_tokens);
  const auto has_ended = [&](const Tokens& row, const Prompt& prompt) {
    return std::ranges::count(row.begin() + std::ssize(prompt.tokens), row.end(), options.end_token) > 0;
  };
  for (int64_t i = 0; i < options.max_new_tokens && !rows.empty(); ++i) {
    if (std::ranges::equal(rows, prompts, has_ended)) break;
    if (options.each_token) options.each_token();
    const at::Tensor scores = scorer.after(rows).cpu();
    Tokens drawn;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      drawn.push_back(draw_token(scores[static_cast<int64_t>(r)], options,
                                 prompts[r].draws.uniform(static_cast<uint64_t>(i))));
      rows[r].push_back(drawn.back());
    }
    if (options.log_probabilities) add_log_probabilities(scores, drawn, *options.log_probabilities);
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r].erase(rows[r].begin(), rows[r].begin() + std::ssize(prompts[r].tokens));
  return rows;
}

std::vector<Tokens> generate_causally(Model& model, int64_t window, const std::vector<Prompt>& prompts,
                                      const GenerationOptions& options) {
  return generate_causally(model, CausalSight{.window = window}, prompts, options);
}

TokenTextPtr bytes_as_text() { return std::make_shared<const BytesAsText>(); }

std::string sample_text(Model& model, const TokenText& text, const std::string& prompt,
                        const TextSampleOptions& options) {
  GenerationOptions generation{.max_new_tokens = options.length, .top_k = 0};
  generation.do_sample = options.temperature > 0.0;
  if (generation.do_sample) generation.temperature = options.temperature;
  const Prompt start{text.encode(prompt), RandomKey(options.seed, "text sample")};
  return text.decode(model.generate({start}, generation).front());
}

std::string closing_text(Model& model, const TokenText& text, uint64_t seed) {
  return sample_text(model, text, "", {kClosingTokens, kClosingTemperature, seed});
}

}  // namespace tutti
