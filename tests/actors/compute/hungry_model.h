#pragma once

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <stdexcept>

#include "models/layers/layer.h"
#include "tests/actors/memory_world.h"

namespace tutti {

inline std::string recipe_of_steps(const std::string& model, const std::string& data, int steps) {
  return "seed = 5\n" + model + "[data.train]\nkind = 'synthetic'\nshuffle = true\n" + data +
         "[optimizer]\nkind = 'adamw'\n[checkpoint]\ninterval = '0ba'\n[collectives]\nbucket_mb = 0.0001\n"
         "[train]\nmax_duration = '" +
         std::to_string(steps) + "ba'\n";
}

inline std::string mlp(int steps) {
  return recipe_of_steps("[model]\nkind = 'mlp'\nhidden = [4]\n",
                         "samples = 24\nbatch_size = 12\nshape = [3]\n", steps);
}

// Takes as much memory as its appetite says.
class HungryModel final : public Model {
 public:
  struct Appetite {
    std::function<int64_t(int call)> bytes_a_sample = [](int) { return 0; };
    bool in_backward = false;
    bool fails_in_commit = false;
    bool fails_in_evaluation = false;
    int64_t most_evaluated = 0;  // samples at once; 0 = any number
    int64_t parameters = 3;      // the first three take part
    std::string words = {};      // of a library that cannot train more than `most_trained` samples at once
    int64_t most_trained = 0;
  };
  explicit HungryModel(Appetite appetite)
      : appetite_(std::move(appetite)), weight_(add_parameter("weight", {appetite_.parameters}, fill())) {}

  TensorTree forward(const Batch& batch) override {
    if (!appetite_.words.empty() && context().training && batch.samples() > appetite_.most_trained)
      throw std::runtime_error(appetite_.words);
    const int64_t bytes = appetite_.bytes_a_sample(calls_++) * batch.samples();
    at::Tensor scores = (batch["input"] * weight_.tensor.narrow(0, 0, 3)).sum(1);
    if (appetite_.in_backward)
      scores.register_hook(
          [bytes](const at::Tensor& grad) { return grad + at::empty({bytes}, at::kByte)[0].mul(0); });
    else
      meal_ = at::empty({bytes + 1}, at::kByte);
    if (context().statistics && appetite_.fails_in_commit)
      context().statistics->push_back({this, at::zeros({1})});
    return scores;
  }
  Outputs eval_forward(const Batch& batch, std::optional<Outputs>) override {
    meal_ = at::Tensor();
    const bool too_many = appetite_.most_evaluated > 0 && batch.samples() > appetite_.most_evaluated;
    if (appetite_.fails_in_evaluation || too_many)
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no room for scores");
    return forward(batch);
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override {
    meal_ = at::Tensor();
    return outputs.tensor().square().mean();
  }
  const char* kind() const override { return "HungryModel"; }
  int64_t statistics_size() const override { return appetite_.fails_in_commit ? 1 : 0; }
  void apply_statistics(const RunningStatistics&, BufferUpdates&) override {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "no room for statistics");
  }

 private:
  static Init fill() {
    return [](at::Tensor& tensor, at::Generator) { tensor.fill_(1.0); };
  }
  Appetite appetite_;
  Parameter& weight_;
  int calls_ = 0;
  at::Tensor meal_;
};

inline constexpr int64_t kMb = 1'000'000;

// 6 samples on each of 2 ranks, which may use 7.5 MB.
inline MemoryWorld hungry_world(HungryModel::Appetite appetite, int steps) {
  MemoryWorld world{.recipe = mlp(steps) + "[device]\nmemory_budget_mb = 7.5\n"};
  world.make_model = [appetite](const Setting&, const SampleSpec&) {
    return std::make_shared<HungryModel>(appetite);
  };
  return world;
}

}  // namespace tutti
