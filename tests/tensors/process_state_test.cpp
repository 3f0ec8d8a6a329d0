#include "tensors/process_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tensors/device.h"

namespace tutti {
namespace {

std::vector<at::Tensor> products(const std::vector<at::Tensor>& factors) {
  Device().use();
  std::vector<at::Tensor> all;
  for (const at::Tensor& left : factors)
    for (const at::Tensor& right : factors)
      if (left.size(0) == right.size(0)) all.push_back(left.t().mm(right));
  return all;
}

// On a machine of several cores, MKL computes a new thread's products with all of them, and rounds otherwise,
// until libtorch's first own loop on that thread: a run that is resumed would begin with other bits.
TEST(ComputeThreads, AreAsManyInANewThreadFromItsFirstProductOn) {
  set_compute_threads(1);
  at::manual_seed(1);
  std::vector<at::Tensor> factors;
  for (const int64_t rows : {10, 20, 100, 300})
    for (const int64_t columns : {10, 17, 33, 130}) factors.push_back(at::randn({rows, columns}));
  const auto own = products(factors);
  std::vector<at::Tensor> of_new_thread;
  std::thread([&] { of_new_thread = products(factors); }).join();
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(own[i].equal(of_new_thread[i])) << i;
}

}  // namespace
}  // namespace tutti
