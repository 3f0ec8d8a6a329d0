#include "tests/golden/scripted_draws.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

namespace tutti {
namespace {

void require_drawable(bool drawable, const std::string& call, const std::string& what) {
  if (!drawable) throw std::logic_error("scripted draws: " + call + " cannot give " + what);
}

template <class T>
T next_draw(std::deque<T>& queue, const std::string& call) {
  if (queue.empty()) throw std::logic_error("scripted draws: none left for " + call);
  T value = std::move(queue.front());
  queue.pop_front();
  return value;
}

std::string range_call(const std::string& name, auto low, auto high) {
  return name + "(" + std::to_string(low) + ", " + std::to_string(high) + ")";
}

template <class T>
void expect_none_left(const std::deque<T>& queue, const char* kind) {
  EXPECT_TRUE(queue.empty()) << queue.size() << " draws not asked for: " << kind;
}

}  // namespace

double ScriptedDraws::uniform(double low, double high) {
  const std::string call = range_call("uniform", low, high);
  const double value = next_draw(script_->uniform, call);
  require_drawable(std::min(low, high) <= value && value <= std::max(low, high), call, std::to_string(value));
  return value;
}

int64_t ScriptedDraws::integer(int64_t low, int64_t high) {
  const std::string call = range_call("integer", low, high);
  const int64_t value = next_draw(script_->integer, call);
  require_drawable(low <= value && value < high, call, std::to_string(value));
  return value;
}

bool ScriptedDraws::bernoulli(double probability) {
  const std::string call = "bernoulli(" + std::to_string(probability) + ")";
  const bool value = next_draw(script_->bernoulli, call);
  require_drawable(value ? probability > 0 : probability < 1, call, value ? "true" : "false");
  return value;
}

double ScriptedDraws::beta(double a, double b) {
  const std::string call = range_call("beta", a, b);
  const double value = next_draw(script_->beta, call);
  require_drawable(a > 0 && b > 0 && 0 <= value && value <= 1, call, std::to_string(value));
  return value;
}

std::vector<double> ScriptedDraws::dirichlet(std::span<const double> concentrations) {
  const std::string call = "dirichlet of " + std::to_string(concentrations.size());
  std::vector<double> value = next_draw(script_->dirichlet, call);
  const auto positive = [](double number) { return number > 0; };
  require_drawable(std::all_of(concentrations.begin(), concentrations.end(), positive), call, "numbers");
  require_drawable(value.size() == concentrations.size(), call, std::to_string(value.size()) + " numbers");
  const double sum = std::accumulate(value.begin(), value.end(), 0.0);
  require_drawable(*std::min_element(value.begin(), value.end()) >= 0, call, "a negative number");
  require_drawable(std::abs(sum - 1) < 1e-5, call, "numbers that sum to " + std::to_string(sum));
  return value;
}

at::Tensor ScriptedDraws::permutation(int64_t size) {
  const std::string call = "permutation(" + std::to_string(size) + ")";
  at::Tensor value = next_draw(script_->permutation, call);
  require_drawable(value.scalar_type() == at::kLong && value.dim() == 1 && value.numel() == size &&
                       at::equal(std::get<0>(value.sort()), at::arange(size)),
                   call, at::str(value));
  return value;
}

at::Tensor ScriptedDraws::uniforms(const Shape& shape) {
  const std::string call = "uniforms(" + at::str(at::IntArrayRef(shape)) + ")";
  at::Tensor value = next_draw(script_->uniforms, call);
  require_drawable(value.scalar_type() == at::kFloat && value.sizes() == at::IntArrayRef(shape), call,
                   value.toString() + " " + at::str(value.sizes()));
  require_drawable(value.ge(0).logical_and(value.lt(1)).all().item<bool>(), call, "numbers outside [0, 1)");
  return value;
}

std::vector<int64_t> ScriptedDraws::choose(int64_t count, std::span<const double> probabilities) {
  const std::string call = "choose " + std::to_string(count) + " of " + std::to_string(probabilities.size());
  std::vector<int64_t> value = next_draw(script_->choose, call);
  require_drawable(static_cast<int64_t>(value.size()) == count, call,
                   std::to_string(value.size()) + " indices");
  require_drawable(std::set<int64_t>(value.begin(), value.end()).size() == value.size(), call,
                   "an index twice");
  for (const int64_t index : value) {
    const bool inside = 0 <= index && index < static_cast<int64_t>(probabilities.size());
    require_drawable(inside && probabilities[static_cast<size_t>(index)] > 0, call,
                     "index " + std::to_string(index));
  }
  return value;
}

RandomKey ScriptedDraws::key_of_batch() const { throw std::logic_error("scripted draws: none for kernels"); }

void ScriptedDraws::expect_all_used() const {
  expect_none_left(script_->uniform, "uniform");
  expect_none_left(script_->integer, "integer");
  expect_none_left(script_->bernoulli, "bernoulli");
  expect_none_left(script_->beta, "beta");
  expect_none_left(script_->dirichlet, "dirichlet");
  expect_none_left(script_->permutation, "permutation");
  expect_none_left(script_->uniforms, "uniforms");
  expect_none_left(script_->choose, "choose");
}

DrawSource ScriptedDraws::source() const {
  return [draws = *this](const DrawKey&) { return std::make_unique<ScriptedDraws>(draws); };
}

}  // namespace tutti
