#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "tensors/draws.h"

namespace tutti {

// Draws what the test says, in its order; notes the ranges of integers.
class GivenDraws final : public Draws {
 public:
  std::deque<int64_t> integers;
  std::deque<bool> outcomes;           // of bernoulli
  std::deque<at::Tensor> of_uniforms;  // of uniforms
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<double> probabilities;

  bool all_drawn() const { return integers.empty() && outcomes.empty() && of_uniforms.empty(); }

  int64_t integer(int64_t low, int64_t high) override {
    ranges.emplace_back(low, high);
    return next(integers);
  }
  bool bernoulli(double probability) override {
    probabilities.push_back(probability);
    return next(outcomes);
  }
  at::Tensor uniforms(const Shape& shape) override {
    at::Tensor drawn = next(of_uniforms);
    EXPECT_EQ(drawn.sizes(), shape);
    return drawn;
  }
  double uniform(double, double) override { return unexpected<double>(); }
  double beta(double, double) override { return unexpected<double>(); }
  std::vector<double> dirichlet(std::span<const double>) override {
    return unexpected<std::vector<double>>();
  }
  at::Tensor permutation(int64_t) override { return unexpected<at::Tensor>(); }
  std::vector<int64_t> choose(int64_t, std::span<const double>) override {
    return unexpected<std::vector<int64_t>>();
  }
  RandomKey key_of_batch() const override { return unexpected<RandomKey>(); }

 private:
  template <class Queue>
  static typename Queue::value_type next(Queue& queue) {
    if (queue.empty()) throw std::logic_error("the test gives no more of these draws");
    auto first = queue.front();
    queue.pop_front();
    return first;
  }
  template <class Number>
  static Number unexpected() {
    throw std::logic_error("a draw that the test does not expect");
  }
};

}  // namespace tutti
