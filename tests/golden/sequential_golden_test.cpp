#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <sstream>

#include "models/layers/blocks.h"
#include "models/zoo/layer_text.h"
#include "tests/golden/expect_near.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

std::shared_ptr<Layer> layers_of(const std::string& texts) {
  std::vector<std::shared_ptr<Layer>> layers;
  std::istringstream list(texts);
  for (std::string text; std::getline(list, text, ';');) layers.push_back(make_layer(text));
  return std::make_shared<Sequential>(std::move(layers));
}

// A list of layers with the weights of a case that PyTorch computed.
class GoldenSequential : public testing::TestWithParam<std::string> {
 protected:
  GoldenSequential() : case_(own_path("sequential.h5"), GetParam()), model_(layers_of(case_.text("layers"))) {
    materialise(*model_, 1);
    const at::NoGradGuard no_grad;
    for (const NamedParameter& one : parameters(*model_)) load(one.name, one.parameter->tensor);
    for (const NamedBuffer& one : buffers(*model_)) load(one.name, one.buffer->tensor);
  }
  void load(const std::string& name, const at::Tensor& into) {
    into.copy_(case_.tensor("in/weights/" + name));
  }

  GoldenCase case_;
  std::shared_ptr<Layer> model_;
};

TEST_P(GoldenSequential, HasPyTorchsNames) {
  std::vector<std::string> names;
  for (const NamedParameter& one : parameters(*model_)) names.push_back(one.name);
  for (const NamedBuffer& one : buffers(*model_)) names.push_back(one.name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names("in/weights")));
}

TEST_P(GoldenSequential, GivesPyTorchsOutputsAndGradients) {
  const at::Tensor outputs = model_->forward(case_.tensor("in/input")).tensor();
  expect_near(outputs.detach(), case_.tensor("out/outputs"), kOfOutputs, "outputs");
  (outputs * case_.tensor("in/output_grad")).sum().backward();
  expect_gradients_near(*model_, case_);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSequential, testing::ValuesIn(golden_cases(own_path("sequential.h5"))),
                         [](const auto& info) {
                           return GoldenCase(own_path("sequential.h5"), info.param).text("title");
                         });

}  // namespace
}  // namespace tutti
