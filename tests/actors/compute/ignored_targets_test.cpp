#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/local_train.h"
#include "data/readers/synthetic_dataset.h"
#include "models/model.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr int64_t kSamples = 12, kClasses = 5, kFeatures = 3;
constexpr double kSmoothing = 0.1, kRate = 0.5;
// However the tests cut the batch, some parts have no target that counts.
at::Tensor given_indices() {
  return at::tensor({-100, 3, -100, -100, 1, 4, 0, -100, -100, -100, 2, 1}, at::kLong);
}

at::Tensor first_weight() {
  return at::linspace(-1, 1, kFeatures * kClasses).sin().view({kFeatures, kClasses});
}
at::Tensor given_inputs() {
  return at::linspace(-3, 4, kSamples * kFeatures).cos().view({kSamples, kFeatures});
}

// A value for each class; each sample has another sum, and some have sum 0.
at::Tensor dense_targets() {
  const at::Tensor some = at::linspace(0, 9, kSamples * kClasses).sin().abs().view({kSamples, kClasses});
  return some * given_indices().ne(-100).unsqueeze(1);
}

class LinearClassifier final : public Classifier {
 public:
  LinearClassifier()
      : weight_(add_parameter("weight", {kFeatures, kClasses}, [](at::Tensor& tensor, const at::Generator&) {
          tensor.copy_(first_weight());
        })) {}
  TensorTree forward(const Batch& batch) override { return batch["input"].matmul(weight_.tensor); }
  const char* kind() const override { return "LinearClassifier"; }
  std::vector<std::string> get_metrics(bool) const override { return {}; }  // accuracy is of indices alone

 private:
  Parameter& weight_;
};

// PyTorch's loss of the whole of the batch.
using Formula = std::function<at::Tensor(const at::Tensor& scores)>;

double mean_of(const at::Tensor& scores, int64_t first, int64_t last) {
  return at::cross_entropy_loss(scores.slice(0, first, last), given_indices().slice(0, first, last))
      .item<double>();
}
at::Tensor smooth_mean(const at::Tensor& scores) {
  return at::cross_entropy_loss(scores, given_indices(), {}, at::Reduction::Mean, -100, kSmoothing);
}
at::Tensor mean_over_masses(const at::Tensor& scores) {
  return -(dense_targets() * at::log_softmax(scores, 1)).sum() / dense_targets().sum();
}

// Plain gradient descent: the losses of `steps` steps, and the weights after them.
std::pair<std::vector<double>, at::Tensor> descended(const Formula& loss_of, int steps) {
  std::vector<double> losses;
  at::Tensor weight = first_weight();
  for (int step = 0; step < steps; ++step) {
    const at::Tensor leaf = weight.detach().requires_grad_(true);
    const at::Tensor loss = loss_of(given_inputs().matmul(leaf));
    loss.backward();
    losses.push_back(loss.item<double>());
    weight = (leaf.detach() - kRate * leaf.grad());
  }
  return {losses, weight};
}

struct Cutting {
  int ranks = 1, grad_accum = 1, evaluated = 0;  // samples of a part of an evaluation; 0: the whole
};
std::vector<Cutting> all_cuttings() {
  std::vector<Cutting> all;
  for (const int ranks : {1, 2, 3})
    for (const int grad_accum : {1, 2, 4}) all.push_back({ranks, grad_accum, 4 - grad_accum});
  return all;
}

using Fields = std::vector<nlohmann::json>;  // lines of metrics.jsonl

Fields lines_of_run(const Cutting& parts, const at::Tensor& target, const std::string& more) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = parts.ranks;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.make_model = [](const Setting&, const SampleSpec&) { return std::make_shared<LinearClassifier>(); };
    job.train =
        std::make_shared<TensorDataset>(TensorTree::Children{{"input", given_inputs()}, {"target", target}},
                                        target.dim() == 1 ? kClasses : 0);
    for (auto& evaluator : job.evaluators) evaluator.data = job.train;
  };
  const std::string data = "kind = 'synthetic'\nsamples = 12\nshape = [3]\nclasses = 5\n";
  const std::string size =
      parts.evaluated > 0 ? "device_eval_microbatch_size = " + std::to_string(parts.evaluated) + "\n" : "";
  train_in_one_process(
      recipe_of("seed = 5\n[model]\nkind = 'mlp'\n[data.train]\n" + data + "batch_size = 12\n[data.eval]\n" +
                data + "batch_size = 6\n" + size +
                "[[data.eval.metrics]]\nkind = 'CrossEntropy'\n"
                "[[data.eval.metrics]]\nkind = 'CrossEntropy'\nname = 'of_batches'\nbatch_means = true\n"
                "[[data.eval.metrics]]\nkind = 'LossMetric'\nloss = 'soft_cross_entropy'\n"
                "[optimizer]\nkind = 'sgd'\nlr = 0.5\n[train]\nmax_duration = '2ba'\ngrad_accum = " +
                std::to_string(parts.grad_accum) + "\n" + more),
      options);
  Fields found;
  std::istringstream lines(read_text(options.run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
  return found;
}

std::vector<double> losses_in(const Fields& lines) {
  std::vector<double> found;
  for (const auto& line : lines)
    if (line.contains("lr")) found.push_back(line["loss"].get<double>());
  return found;
}

double last_of(const Fields& lines, const std::string& metric) {
  double found = std::nan("");
  for (const auto& line : lines)
    if (line.contains("metrics/eval/" + metric) && line["metrics/eval/" + metric].is_number())
      found = line["metrics/eval/" + metric].get<double>();
  return found;
}

void expect_losses(const Fields& lines, const std::vector<double>& wanted) {
  const auto found = losses_in(lines);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t step = 0; step < wanted.size(); ++step)
    EXPECT_NEAR(found[step], wanted[step], 2e-6) << step;
}

TEST(IgnoredTargets, SmoothTargetsTrainAsInPyTorchOverAnyParts) {
  const std::string smoothing = "[[algorithms]]\nkind = 'label_smoothing'\nsmoothing = 0.1\n";
  const auto [losses, weight] = descended(smooth_mean, 2);
  const at::Tensor scores = given_inputs().matmul(weight);
  for (const Cutting& parts : all_cuttings()) {
    SCOPED_TRACE(testing::Message() << parts.ranks << " ranks x " << parts.grad_accum);
    const Fields lines = lines_of_run(parts, given_indices(), smoothing);
    expect_losses(lines, losses);
    for (const char* metric : {"CrossEntropy", "LossMetric", "loss"})
      EXPECT_NEAR(last_of(lines, metric), mean_of(scores, 0, kSamples), 2e-6) << metric;
    EXPECT_NEAR(last_of(lines, "of_batches"), (mean_of(scores, 0, 6) + mean_of(scores, 6, 12)) / 2, 2e-6);
  }
}

TEST(IgnoredTargets, SmoothTargetsWithClassWeightsTrainAsInPyTorchOverAnyParts) {
  const at::Tensor of_classes = at::tensor({1.0F, 5.0F, 0.2F, 3.0F, 0.5F});
  const auto loss = [&](const at::Tensor& scores) {
    return at::cross_entropy_loss(scores, given_indices(), of_classes, at::Reduction::Mean, -100, kSmoothing);
  };
  const std::string more =
      "[model.loss]\nkind = 'cross_entropy'\nweight = [1.0, 5.0, 0.2, 3.0, 0.5]\n[[algorithms]]\n"
      "kind = 'label_smoothing'\nsmoothing = 0.1\n";
  for (const Cutting& parts : all_cuttings()) {
    SCOPED_TRACE(testing::Message() << parts.ranks << " ranks x " << parts.grad_accum);
    expect_losses(lines_of_run(parts, given_indices(), more), descended(loss, 2).first);
  }
}

TEST(IgnoredTargets, DenseTargetsCountByTheirSumOverAnyParts) {
  const auto [losses, weight] = descended(mean_over_masses, 2);
  const double mean = mean_over_masses(given_inputs().matmul(weight)).item<double>();
  for (const Cutting& parts : all_cuttings()) {
    SCOPED_TRACE(testing::Message() << parts.ranks << " ranks x " << parts.grad_accum);
    const Fields lines = lines_of_run(parts, dense_targets().to(at::kFloat), "");
    expect_losses(lines, losses);
    for (const char* metric : {"CrossEntropy", "LossMetric", "loss"})
      EXPECT_NEAR(last_of(lines, metric), mean, 2e-6) << metric;
  }
}

}  // namespace
}  // namespace tutti
