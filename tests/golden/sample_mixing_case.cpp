#include "tests/golden/sample_mixing_case.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "training/state.h"

namespace tutti {
namespace {

// Has the loss of a classifier.
class GivenLogits final : public Classifier {
 public:
  TensorTree forward(const TensorTree&) override { return logits; }
  const char* kind() const override { return "GivenLogits"; }
  at::Tensor logits;
};

void act_at(Event event, Algorithm& algorithm, State& state) {
  Logger logger;
  if (algorithm.match(event, state)) algorithm.apply(event, state, logger);
}

}  // namespace

SampleMixingOptions mixing_options_of(const GoldenCase& c) {
  return {.interpolate_loss = c.number("interpolate_loss") != 0.0};
}

void expect_mixed(const GoldenCase& c, SampleMixing& algorithm, DrawScript script) {
  c.expect_only_outputs({"input", "target", "loss"});
  const auto model = std::make_shared<GivenLogits>();
  model->logits = c.tensor("in/logits");
  EXPECT_EQ(model->logits.size(1), c.number("num_classes")) << c.title();
  const ScriptedDraws draws(std::move(script));
  State state;
  state.model = model;
  state.draw_source = draws.source();
  state.batch.set("input", c.tensor("in/input"));
  state.batch.set("target", c.tensor("in/target"));
  act_at(Event::kBeforeForward, algorithm, state);
  c.expect_close(state.batch["input"], "out/input");
  state.outputs = state.forward(state.batch);
  act_at(Event::kBeforeLoss, algorithm, state);
  if (c.holds("out/target")) c.expect_close(state.batch["target"], "out/target");
  state.loss = state.loss_of(state.outputs, state.batch);
  act_at(Event::kBeforeBackward, algorithm, state);
  c.expect_close(state.loss, "out/loss");
  draws.expect_all_used();
}

}  // namespace tutti
