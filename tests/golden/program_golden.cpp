#include "tests/golden/program_golden.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

namespace tutti {

// With other threads sums have another order, which norms over a few numbers make large.
ProgramGolden::ProgramGolden(const char* file)
    : threads_(at::get_num_threads()), case_(golden_path(file), GetParam()) {
  const auto truth = case_.numbers("truth");
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const std::string name = std::to_string(i);
    const at::Tensor given = case_.tensor("in/" + name);
    batch_.set("array" + name, truth[i] > 0 ? given.to(at::kBool) : given);
  }
}

ProgramGolden::~ProgramGolden() { at::set_num_threads(threads_); }

void ProgramGolden::use(std::shared_ptr<Model> model) {
  model_ = std::move(model);
  materialise(*model_, 1);
  at::set_num_threads(1);
}

void ProgramGolden::expect_outputs() {
  const EvaluationMode evaluation(*model_);
  const at::NoGradGuard no_grad;
  expect_close(forward(), "out/evaluation", 1e-5);
}

void ProgramGolden::expect_training() {
  const at::Tensor given = forward();
  expect_close(given.detach(), "out/training", 1e-5);
  expect_gradients(given, "out/gradients");
}

void ProgramGolden::expect_evaluation_gradients() {
  const EvaluationMode evaluation(*model_);
  expect_gradients(forward(), "out/evaluation_gradients");
}

double ProgramGolden::size_of(const std::string& dataset) const {
  return case_.tensor(dataset).abs().max().item<double>();
}

void ProgramGolden::expect_close(const at::Tensor& got, const std::string& dataset, double tolerance,
                                 double least) const {
  const at::Tensor want = case_.tensor(dataset);
  ASSERT_EQ(got.sizes(), want.sizes()) << dataset;
  const double size = std::max(least, want.abs().max().item<double>()),
               off = (got - want).abs().max().item<double>();
  EXPECT_LE(off, tolerance * size) << dataset << " of " << case_.title() << ", of size " << size;
}

void ProgramGolden::expect_gradients(const at::Tensor& given, const std::string& group) const {
  (given * case_.tensor("in/probe")).sum().backward();
  double largest = 0;
  for (const std::string& name : case_.names(group)) largest = std::max(largest, size_of(group + "/" + name));
  std::vector<std::string> names;
  for (const NamedParameter& one : parameters(*model_)) {
    const at::Tensor& gradient = one.parameter->tensor.grad();
    if (!gradient.defined()) continue;
    names.push_back(one.name);
    expect_close(gradient, group + "/" + one.name, 1e-4, 1e-2 * largest);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names(group)));
}

}  // namespace tutti
