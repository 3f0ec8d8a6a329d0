// U-Nets beside those of segmentation_models_pytorch (make_unets.py).

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <map>

#include "models/layers/statistics_rows.h"
#include "models/zoo/unet.h"
#include "tests/golden/expect_near.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

// By name.
using Tensors = std::map<std::string, at::Tensor>;

UnetOptions options_of(const GoldenCase& golden) {
  UnetOptions o{.encoder_name = golden.text("encoder_name")};
  const auto number = [&](const char* name) { return static_cast<int64_t>(golden.number(name)); };
  o.encoder_width = number("encoder_width");
  o.encoder_depth = number("encoder_depth");
  o.in_channels = number("in_channels");
  o.classes = number("classes");
  o.decoder_channels.clear();
  for (const double channels : golden.numbers("decoder_channels"))
    o.decoder_channels.push_back(static_cast<int64_t>(channels));
  return o;
}

// A model with the weights, and the batch, of a case.
class GoldenUnet : public testing::TestWithParam<std::string> {
 protected:
  GoldenUnet() : case_(own_path("unets.h5"), GetParam()), model_(options_of(case_)) {
    at::set_num_threads(1);
    materialise(model_, 1);
    const at::NoGradGuard no_grad;
    for (const auto& [name, part] : parts("names", "in/weights", weights())) weights().at(name).copy_(part);
    for (const char* array : {"input", "target"}) batch_.set(array, case_.tensor(std::string("in/") + array));
    if (case_.number("classes") > 1) return;
    model_.set_loss(make_loss(Setting(std::string("bce_with_logits"), "model.loss", {})));
    model_.set_labels(true);
  }

  ~GoldenUnet() override { at::set_num_threads(threads_); }

  Tensors weights() {
    Tensors all = buffers_by_name();
    for (const NamedParameter& one : parameters(model_)) all[one.name] = one.parameter->tensor;
    return all;
  }
  Tensors buffers_by_name() {
    Tensors all;
    for (const NamedBuffer& one : buffers(model_)) all[one.name] = one.buffer->tensor;
    return all;
  }
  // The numbers of `dataset` for each of the names in the attribute, shaped as those `alike`.
  Tensors parts(const char* names, const char* dataset, const Tensors& alike) {
    const at::Tensor all = case_.tensor(dataset);
    Tensors found;
    int64_t first = 0;
    for (const std::string& name : parts_of(case_.text(names))) {
      const at::Tensor& one = alike.at(name);
      found[name] = all.narrow(0, first, one.numel()).view(one.sizes());
      first += one.numel();
    }
    EXPECT_EQ(first, all.numel()) << dataset;
    return found;
  }
  std::vector<std::string> trained_names() {
    std::vector<std::string> names;
    for (const NamedParameter& one : parameters(model_))
      if (one.parameter->trained) names.push_back(one.name);
    return names;
  }

  const int threads_ = at::get_num_threads();
  GoldenCase case_;
  Unet model_;
  Batch batch_;
};

TEST_P(GoldenUnet, HasTheClientsNames) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : weights()) names.push_back(name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(parts_of(case_.text("names"))));
}

TEST_P(GoldenUnet, GivesTheClientsLossAndGradients) {
  const Outputs outputs = model_.forward(batch_);
  const at::Tensor loss = model_.loss(outputs, batch_);
  expect_near(outputs.tensor().detach(), case_.tensor("out/outputs"), kOfOutputs, "outputs");
  expect_near(loss.detach(), case_.tensor("out/loss"), kOfOutputs, "loss");
  loss.backward();
  EXPECT_THAT(trained_names(), testing::UnorderedElementsAreArray(parts_of(case_.text("trained"))));
  const Tensors of_model = weights();
  for (const auto& [name, gradient] : parts("trained", "out/grads", of_model))
    expect_near(of_model.at(name).grad(), gradient, kOfGradients, name);
}

TEST_P(GoldenUnet, GivesTheClientsEvaluationOnceStatisticsAreApplied) {
  std::vector<RunningStatistics> found;
  const ForwardContext training{.training = true, .statistics = &found};
  set_context(model_, &training);
  model_.forward(batch_);
  for (const RunningStatistics& statistics : found) apply(statistics);
  const Tensors of_model = buffers_by_name();
  for (const auto& [name, buffer] : parts("buffers", "out/buffers", of_model))
    expect_near(of_model.at(name), buffer, kOfOutputs, name);
  const ForwardContext evaluating{.training = false};
  set_context(model_, &evaluating);
  expect_near(model_.eval_forward(batch_).tensor().detach(), case_.tensor("out/eval_outputs"), kOfOutputs,
              "outputs");
  set_context(model_, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenUnet, testing::ValuesIn(golden_cases(own_path("unets.h5"))),
                         [](const auto& info) {
                           return GoldenCase(own_path("unets.h5"), info.param).text("title");
                         });

}  // namespace
}  // namespace tutti
