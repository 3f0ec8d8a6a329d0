#include "actors/compute/exchange.h"

#include <algorithm>
#include <utility>

#include "actors/compute/bucket_exchange.h"
#include "actors/compute/unit_exchange.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

class SingleExchange final : public Exchange {
 public:
  SingleExchange(State& state, bool scaled) : state_(state), scaled_(scaled) {}

  void plan(Context&, const PassShape&) override {}
  PassResult agree(Context&, Verdict mine, const at::Tensor& statistics) override {
    mine.overflow = overflows() ? 1 : 0;
    return {std::move(mine), statistics.defined() ? statistics.clone().unsqueeze(0) : statistics};
  }
  void take_gradients(Context&, const Verdict&) override {
    for (ParamView& view : state_.views)
      view.grad = view.tensor.requires_grad() ? view.tensor.grad() : at::Tensor();
  }
  bool owns_gradients() const override { return true; }
  at::Tensor sum(Context&, const at::Tensor& values) override { return values; }

 private:
  bool overflows() const {
    return std::ranges::any_of(state_.views, [this](const ParamView& view) {
      const at::Tensor& grad = view.tensor.grad();
      return grad.defined() && !(scaled_ ? all_finite(grad) : gradient_is_finite(grad));
    });
  }

  State& state_;
  bool scaled_;
};

}  // namespace

std::unique_ptr<Exchange> make_single_exchange(State& state, bool scaled) {
  return std::make_unique<SingleExchange>(state, scaled);
}

std::unique_ptr<Exchange> make_exchange(Context& context, State& state, const ExchangeOptions& options,
                                        const RankActors& actors, Recorder& recorder) {
  using enum ShardingStrategy;
  const bool in_buckets = options.sharding.strategy == kNone || options.sharding.strategy == kOptimizer;
  const auto make = in_buckets ? make_bucket_exchange : make_unit_exchange;
  return make(context, state, options, actors, recorder);
}

}  // namespace tutti
