// Measures a step of each optimizer over 10 million parameters in 100 tensors, on one thread: the median
// of 11. bench/optimizers.py does the same with torch.optim, and compares.
//
// usage: optimizer_bench KIND...
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tensors/process_state.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"

namespace tutti {
namespace {

constexpr int kTimes = 11;
constexpr int kPairs = 50;
constexpr int64_t kRows = 400, kColumns = 500;

void measure(const std::string& kind) {
  std::vector<ParamView> views;
  for (int i = 0; i < kPairs; ++i) {
    const std::string name = "layer" + std::to_string(i);
    views.push_back(whole_view(name + ".weight", at::randn({kRows, kColumns})));
    views.push_back(whole_view(name + ".bias", at::randn({kColumns})));
  }
  for (ParamView& view : views) view.grad = at::randn(view.shape);
  const Catalog catalog = optimizer_catalog();
  const std::string toml = "[optimizer]\nkind = \"" + kind + "\"\nlr = 0.001\nweight_decay = 0.01\n";
  const Setting recipe = resolve(parse_recipe(toml, "bench.toml"), std::span(&catalog, 1));
  const auto optimizer = make_optimizer(recipe.at("optimizer"), views);
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    optimizer->step();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::ranges::nth_element(times, times.begin() + kTimes / 2);
  std::printf("%s %.2f\n", kind.c_str(), times[kTimes / 2]);
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  tutti::set_compute_threads(1);
  for (int i = 1; i < count; ++i) tutti::measure(words[i]);
}
