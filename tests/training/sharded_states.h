#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "training/state.h"

namespace tutti {

// A parameter and its gradient, both whole.
struct WholeParameter {
  std::string name;
  at::Tensor weight, grad;
};

// Parameters of many shapes and layouts: scalars, fewer rows than ranks, rows of one number.
std::vector<WholeParameter> many_parameters(at::ScalarType dtype);

// Copies of rows, as `share` has them of a parameter.
at::Tensor rows_of(const at::Tensor& whole, const Share& share);

// Runs `work` on all ranks at once, each on a thread of its own: with the share of a rank of `ranks` in
// copies of the parameters, and with sums over the ranks. One rank has all and sums with nobody.
void run_on_shares(const std::vector<WholeParameter>& parameters, int ranks,
                   const std::function<void(State&)>& work);

// The same for work that gives a tensor for each parameter, with the rows of the share: those of all ranks,
// joined. Scalars have to be the same on all ranks.
std::vector<at::Tensor> joined_over_shares(const std::vector<WholeParameter>& parameters, int ranks,
                                           const std::function<std::vector<at::Tensor>(State&)>& work);

}  // namespace tutti
