#include "tests/golden/trainer_draws.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <span>

#include "training/state.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

// "004_np.random.beta" is np.random.beta.
std::string function_of(const std::string& dataset) { return dataset.substr(dataset.find('_') + 1); }

// CutMix draws lambda once more than it needs: the last of these.
bool is_unused(const Names& drawn, size_t at) {
  static const std::array<std::string, 5> of_cutmix = {
      "torch.randperm", "np.random.beta", "np.random.randint", "np.random.randint", "np.random.beta"};
  if (at + 1 < of_cutmix.size()) return false;
  return std::ranges::equal(of_cutmix, std::span(drawn).subspan(at + 1 - of_cutmix.size(), of_cutmix.size()),
                            [](const auto& want, const auto& name) { return want == function_of(name); });
}

// SelectiveBackprop chooses without replacement, GyroDropout with it.
std::string with_replacement(const GoldenCase& c, const std::string& function) {
  const bool gyro = c.has("algo0.name") && c.text("algo0.name") == "GyroDropout";
  return gyro && function == "np.random.choice" ? "np.random.randint" : function;
}

std::vector<int64_t> picks_drawn(const at::Tensor& tensor) {
  return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()};
}

void add_draw(const std::string& function, const at::Tensor& drawn, DrawScript& script) {
  if (function == "np.random.beta")
    script.beta.push_back(drawn.item<double>());
  else if (function == "np.random.randint" || function == "torch.randint")
    for (const int64_t one : picks_drawn(drawn.flatten())) script.integer.push_back(one);
  else if (function == "np.random.choice")
    script.choose.push_back(picks_drawn(drawn));
  else if (function == "torch.randperm")
    script.permutation.push_back(drawn);
  else if (function == "torch.rand")
    script.uniforms.push_back(drawn);
  else
    throw std::logic_error("no test knows the draws of " + function);
}

class GivenDraws final : public Algorithm {
 public:
  explicit GivenDraws(const DrawScript& script) : draws_(script) {}
  ~GivenDraws() override { draws_.expect_all_used(); }
  std::string name() const override { return "GivenDraws"; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event, State& state, Logger&) override { state.draw_source = draws_.source(); }

 private:
  ScriptedDraws draws_;
};

}  // namespace

DrawScript draws_of(const GoldenCase& c) {
  DrawScript script;
  if (!c.holds("in/draws")) return script;
  const Names drawn = c.names("in/draws");
  for (size_t i = 0; i < drawn.size(); ++i)
    if (!is_unused(drawn, i))
      add_draw(with_replacement(c, function_of(drawn[i])), c.tensor("in/draws/" + drawn[i]), script);
  return script;
}

void give_draws(Job& job, const DrawScript& script) {
  job.listeners = [script](int) {
    Engine::Options listeners;
    listeners.algorithms = {std::make_shared<GivenDraws>(script)};
    return listeners;
  };
}

}  // namespace tutti
