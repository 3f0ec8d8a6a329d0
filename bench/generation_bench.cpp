// Prints how long a Llama of four blocks takes to generate, in ms: the median of seven times, after one that
// does not count. bench/llama.py measures transformers' generate beside it.
//
// usage: generation_bench PROMPTS TOKENS_OF_EACH NEW_TOKENS THREADS
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "models/zoo/llama.h"

namespace tutti {
namespace {

constexpr int kTimes = 7;

const LlamaOptions kSizes{.vocab_size = 1024,
                          .hidden_size = 256,
                          .intermediate_size = 688,
                          .num_hidden_layers = 4,
                          .num_attention_heads = 8,
                          .num_key_value_heads = 4,
                          .max_position_embeddings = 1024};

void measure(int64_t prompts, int64_t length, int64_t new_tokens) {
  Llama model(kSizes);
  materialise(model, 1);
  std::vector<Prompt> all;
  for (int64_t p = 0; p < prompts; ++p) {
    Prompt prompt{{}, RandomKey(1, "bench")};
    for (int64_t t = 0; t < length; ++t) prompt.tokens.push_back((p * 31 + t * 17) % kSizes.vocab_size);
    all.push_back(prompt);
  }
  std::vector<double> took;
  for (int i = 0; i <= kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    model.generate(all, {.max_new_tokens = new_tokens});
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (i > 0) took.push_back(time.count());
  }
  std::ranges::sort(took);
  std::printf("%.3f\n", took[kTimes / 2]);
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  if (count != 5) return 2;
  at::set_num_threads(std::atoi(words[4]));
  tutti::measure(std::atol(words[1]), std::atol(words[2]), std::atol(words[3]));
}
