#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tensors/draws.h"

namespace tutti {

// The results of calls to a Draws, a queue for each kind of call.
struct DrawScript {
  std::deque<double> uniform = {};
  std::deque<int64_t> integer = {};
  std::deque<bool> bernoulli = {};
  std::deque<double> beta = {};
  std::deque<std::vector<double>> dirichlet = {};
  std::deque<at::Tensor> permutation = {};
  std::deque<at::Tensor> uniforms = {};
  std::deque<std::vector<int64_t>> choose = {};
};

// Gives the numbers of a script in place of random ones. Throws std::logic_error where the queue of a call is
// empty, or where the call could not have drawn the next value: a number outside the range, a tensor of
// another shape, the same index twice. A uniform may be either end of its range, as a rounded one may.
// Copies share one script.
class ScriptedDraws final : public Draws {
 public:
  explicit ScriptedDraws(DrawScript script) : script_(std::make_shared<DrawScript>(std::move(script))) {}

  double uniform(double low, double high) override;
  int64_t integer(int64_t low, int64_t high) override;
  bool bernoulli(double probability) override;
  double beta(double a, double b) override;
  std::vector<double> dirichlet(std::span<const double> concentrations) override;
  at::Tensor permutation(int64_t size) override;
  at::Tensor uniforms(const Shape& shape) override;
  std::vector<int64_t> choose(int64_t count, std::span<const double> probabilities) override;
  RandomKey key_of_batch() const override;  // always throws: a script has no numbers for kernels

  // Expects (gtest) that no value is left.
  void expect_all_used() const;

  // Opens the rest of the script for every key: for State::draws, through a whole training.
  DrawSource source() const;

 private:
  std::shared_ptr<DrawScript> script_;
};

}  // namespace tutti
