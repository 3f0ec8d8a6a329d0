#include "algorithms/loop/distillation.h"

#include <ATen/ATen.h>

#include <utility>

#include "models/losses.h"
#include "models/model.h"
#include "runtime/error.h"
#include "tensors/memory/torch_error.h"
#include "training/state.h"

namespace tutti {
namespace {

// Scores with their classes last.
at::Tensor classes_last(const Model& model, const at::Tensor& outputs) {
  return dynamic_cast<const Classifier*>(&model) ? outputs.movedim(1, -1) : outputs;
}

// The weight of each item, as in the mean of the model's own loss: that of its class, 0 for an ignored
// target, of probabilities their sum. Batches without targets: 1.
at::Tensor counted_items(const Model& model, const Batch& batch, const at::Tensor& outputs,
                         const at::Tensor& scores) {
  const auto items = scores.sizes().slice(0, scores.dim() - 1);
  const TensorTree* input = batch.find("labels");
  if (!input) input = batch.find("target");
  if (!input) return at::ones(items, scores.options().dtype(at::kFloat));
  const at::Tensor& target = input->tensor();
  if (target.sizes() == outputs.sizes()) return target_masses(target.to(at::kFloat)).to(at::kFloat);
  const at::Tensor counted = target.ne(kIgnoredTarget).view(items).to(at::kFloat);
  const auto* classifier = dynamic_cast<const Classifier*>(&model);
  const at::Tensor weights =
      classifier ? classifier->chosen_loss().class_weights(target.device()) : at::Tensor();
  if (!weights.defined()) return counted;
  return counted * weights.index_select(0, target.clamp_min(0).flatten()).view(items);
}

}  // namespace

at::Tensor distillation_loss(const at::Tensor& scores, const at::Tensor& teacher_scores,
                             const at::Tensor& counted, double temperature) {
  const at::Tensor mine = at::log_softmax(scores.to(at::kFloat) / temperature, -1),
                   expected = at::softmax(teacher_scores.to(at::kFloat) / temperature, -1);
  const at::Tensor divergences = at::kl_div(mine, expected, at::Reduction::None).sum(-1);
  return (divergences * counted).sum() / counted.sum() * (temperature * temperature);
}

Teacher& Distillation::teacher(const State& state) const {
  if (!teacher_) teacher_ = make_teacher(options_.teacher, state);
  return *teacher_;
}

void Distillation::require(const State& state) const {
  const auto* classifier = dynamic_cast<const Classifier*>(state.model.get());
  if (state.model->compares_step() || (classifier && !classifier->takes_dense_targets()))
    fail("the model has no scores of classes, which a teacher could have too");
  if (classifier && classifier->has_several_labels())
    fail("an item of the model may have several labels; a teacher's scores are of one class among all");
  const auto* taught_by = dynamic_cast<const Classifier*>(&teacher(state).model());
  if (taught_by && (!taught_by->takes_dense_targets() || taught_by->has_several_labels()))
    options_.teacher.fail("its outputs are no scores of one class among all: it has another loss");
}

bool Distillation::try_on(const State& state, Batch& sample) const {
  const at::Tensor teacher_scores = teacher(state).try_forward(sample).tensor(),
                   mine = state.try_forward(sample).tensor();
  if (mine.sizes() != teacher_scores.sizes())
    throw UserError("the teacher's outputs are " + shape_text(teacher_scores.sizes()) +
                    " for a sample, the model's " + shape_text(mine.sizes()) +
                    "; expected the same classes or tokens");
  return false;
}

bool Distillation::match(Event event, const State&) const {
  return event == Event::kFitStart || event == Event::kBeforeBackward;
}

void Distillation::apply(Event event, State& state, Logger&) {
  if (event == Event::kFitStart) {
    if (!std::exchange(loaded_, true)) teacher(state).load(state, digest_);
    return;
  }
  const at::Tensor outputs = state.outputs.tensor(), scores = classes_last(*state.model, outputs);
  const at::Tensor counted = counted_items(*state.model, state.batch, outputs, scores);
  const at::Tensor teacher_scores = classes_last(*state.model, teacher_->forward(state.batch).tensor());
  const at::Tensor divergence = distillation_loss(scores, teacher_scores, counted, options_.temperature);
  state.loss = state.loss * (1.0 - options_.weight) + divergence * options_.weight;
}

AlgorithmPtr DistillationOptions::make(const Setting&) const { return std::make_shared<Distillation>(*this); }

}  // namespace tutti
