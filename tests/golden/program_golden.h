#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "tests/golden/golden_file.h"

namespace tutti {

// A program in a file against what PyTorch gave for it (add_case of make_exported.py and make_scripts.py).
class ProgramGolden : public testing::TestWithParam<std::string> {
 protected:
  explicit ProgramGolden(const char* file);
  ~ProgramGolden() override;

  // Options with the case's inputs and prediction.
  template <class Options>
  Options options(const std::string& path) const {
    Options found{.path = golden_path(path)};
    if (case_.has("prediction")) found.prediction = case_.text("prediction");
    for (const auto& [name, tensor] : batch_.children()) found.inputs.push_back(name);
    return found;
  }
  void use(std::shared_ptr<Model> model);
  at::Tensor forward() { return model_->forward(batch_).tensor(); }

  void expect_outputs();  // in evaluation
  void expect_training();
  void expect_evaluation_gradients();

  double size_of(const std::string& dataset) const;
  // Within so much of the largest number, or of `least` where all are smaller.
  void expect_close(const at::Tensor& got, const std::string& dataset, double tolerance,
                    double least = 0) const;
  // Before a norm they are zero but for rounding, and little beside the others.
  void expect_gradients(const at::Tensor& given, const std::string& group) const;

  const int threads_;
  GoldenCase case_;
  Batch batch_;
  std::shared_ptr<Model> model_;
};

}  // namespace tutti
