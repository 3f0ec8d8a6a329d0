#include "models/all_ranks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// 16 bits have too little precision for a sum.
at::Tensor summed(AllRanks& ranks, const at::Tensor& mine) {
  const at::NoGradGuard no_grad;
  const at::ScalarType dtype =
      at::isReducedFloatingType(mine.scalar_type()) ? at::kFloat : mine.scalar_type();
  const at::Tensor numbers =
      at::zeros(mine.sizes(), at::TensorOptions(dtype)).copy_(mine.detach()).view({-1});
  ranks.sum_over_ranks(numbers);
  return numbers.view(mine.sizes()).to(mine.device(), mine.scalar_type());
}

// Of both functions; lives as long as the pass.
AllRanks& ranks_of(const AutogradContext& context) {
  return *reinterpret_cast<AllRanks*>(context.saved_data.at("ranks").toInt());
}

void save(AutogradContext& context, AllRanks& ranks) {
  context.saved_data["ranks"] = reinterpret_cast<int64_t>(&ranks);
}

class SumOfAll : public torch::autograd::Function<SumOfAll> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& mine, AllRanks* ranks) {
    save(*context, *ranks);
    return summed(*ranks, mine);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {summed(ranks_of(*context), gradients[0]), {}};
  }
};

class GatheredRows : public torch::autograd::Function<GatheredRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& mine, AllRanks* ranks, int64_t first,
                            int64_t all) {
    save(*context, *ranks);
    context->saved_data["first"] = first;
    context->saved_data["count"] = mine.size(0);
    auto shape = mine.sizes().vec();
    shape[0] = all;
    const at::Tensor rows = at::zeros(shape, mine.options());
    rows.narrow(0, first, mine.size(0)).copy_(mine);
    return summed(*ranks, rows);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const int64_t first = context->saved_data["first"].toInt(), count = context->saved_data["count"].toInt();
    return {summed(ranks_of(*context), gradients[0]).narrow(0, first, count), {}, {}, {}};
  }
};

}  // namespace

at::Tensor sum_of_all(AllRanks& ranks, const at::Tensor& mine) {
  return ranks.world() == 1 ? mine : SumOfAll::apply(mine, &ranks);
}

RowsOfAll rows_of_all(AllRanks& ranks, const at::Tensor& mine) {
  if (ranks.world() == 1) return {mine, 0};
  const at::Tensor counts = at::zeros({ranks.world()}, at::kLong);
  counts[ranks.rank()] = mine.size(0);
  ranks.sum_over_ranks(counts);
  const int64_t first = counts.narrow(0, 0, ranks.rank()).sum().item<int64_t>();
  return {GatheredRows::apply(mine, &ranks, first, counts.sum().item<int64_t>()), first};
}

}  // namespace tutti
