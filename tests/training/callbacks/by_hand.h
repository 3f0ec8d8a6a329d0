#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/recipe/section.h"
#include "training/engine/callback.h"
#include "training/optimizers/options.h"
#include "training/state.h"

namespace tutti {

// The last logged value of each key.
struct Kept final : Logger {
  std::map<std::string, double> values;
  std::size_t numbers = 0;  // in all
  void log_metrics(const LoggedMetrics& metrics) override {
    numbers += metrics.size();
    for (const auto& [key, value] : metrics) values[key] = value;
  }
};

// A run by hand: batches of 32 samples, each taking as long as the test says.
class CallbackTest : public testing::Test {
 protected:
  CallbackTest() {
    state_.max_duration = Time(4, TimeUnit::kEpoch);
    state_.dataloader_len = 10;
  }

  void batch(Callback& callback, double seconds, int64_t tokens = 0) {
    logged_.values.clear();
    for (const Event event :
         {Event::kBatchStart, Event::kBeforeTrainBatch, Event::kBeforeForward, Event::kAfterForward})
      callback.run_event(event, state_, logged_);
    callback.run_event(Event::kAfterTrainBatch, state_, logged_);
    state_.to_next_batch(32, tokens, seconds);
    callback.run_event(Event::kBatchEnd, state_, logged_);
  }
  void end_epoch(Callback& callback) {
    state_.timestamp.to_next_epoch();
    callback.run_event(Event::kEpochEnd, state_, logged_);
  }
  void evaluation(Callback& callback, double seconds) {
    state_.dataloader_label = "eval";
    state_.eval_timestamp.total_wct = seconds;
    callback.run_event(Event::kEvalEnd, state_, logged_);
    state_.dataloader_label = "train";
  }
  void measured(Callback& callback, double value, const char* metric = "MulticlassAccuracy") {
    state_.metric_values[std::string("eval/") + metric] = value;
    evaluation(callback, 0);
  }
  bool stopped() const { return reached(state_.timestamp, state_.max_duration); }

  State state_;
  Kept logged_;
};

// Two parameters, and an optimizer that changes them.
class WithOptimizer : public CallbackTest {
 protected:
  void optimizer(const std::string& kind, double weight_decay = 0.0) {
    state_.views = {whole_view("a.weight", at::tensor({3.0F, 4.0F})), whole_view("b", at::tensor({2.0F}))};
    Setting section = smallest_section(optimizer_catalog(), kind);
    section.find("weight_decay")->value = weight_decay;
    state_.optimizer = make_optimizer(section, state_.views);
  }
  // One step on gradients that are sums over 8 samples.
  void step(Callback& callback) {
    state_.grad_scale = 8.0;
    state_.views[0].grad = at::tensor({24.0F, -32.0F});
    state_.views[1].grad = at::tensor({96.0F});
    callback.run_event(Event::kAfterTrainBatch, state_, logged_);
    state_.optimizer->step(at::scalar_tensor(8.0F));
    for (auto& view : state_.views) view.grad = at::Tensor();
    state_.to_next_batch(32, 0, 1.0);
    logged_.values.clear();
    callback.run_event(Event::kBatchEnd, state_, logged_);
  }
};

// Doubles its input.
class Twice final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input.tensor() * 2; }
  const char* kind() const override { return "Twice"; }
};

class TwiceTwice final : public Model {
 public:
  TwiceTwice() {
    add_slot("first", std::make_shared<Twice>());
    add_slot("last", std::make_shared<Twice>());
  }
  TensorTree forward(const Batch& batch) override { return (*slots()[1])((*slots()[0])(batch)); }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "TwiceTwice"; }
  std::vector<std::string> get_metrics(bool) const override { return {"MulticlassAccuracy", "CrossEntropy"}; }
};

}  // namespace tutti
