// Measures how fast weights are read into a model: the least of five times. bench/peer_weights.py writes the
// file, and measures safetensors and PyTorch on it.
//
// usage: weights_bench FILE   (of GPT-2 with 124 million parameters)
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "training/initial_weights.h"
#include "training/optimizers/options.h"
#include "training/trainee.h"

namespace tutti {
namespace {

constexpr int kTimes = 5;

constexpr const char* kGpt2 =
    "[model]\nkind = \"gpt\"\nvocab_size = 50257\nn_positions = 1024\nn_embd = 768\nn_layer = 12\nn_head = "
    "12\n"
    "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n";

void measure(const std::string& file) {
  const Catalog catalogs[] = {model_catalog(), optimizer_catalog()};
  const Setting recipe = resolve(parse_recipe(kGpt2, "gpt2.toml"), catalogs);
  Trainee trainee;
  build(
      trainee, recipe,
      {.shapes = {{"input", {8}}, {"target", {8}}}, .dtypes = {{"input", at::kLong}, {"target", at::kLong}}},
      1);
  double least = 1e9;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    load_initial_weights(trainee, recipe.at("model"), Setting(file, "weights", {}));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count());
  }
  std::printf("tutti: %.3f s\n", least);
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  if (count != 2) return 2;
  tutti::measure(words[1]);
}
