#pragma once

#include <memory>

#include "actors/compute/exchange.h"

namespace tutti {

// Sums gradients of the whole batch in buckets of all parameters: strategies `none` and `optimizer`, which
// reduces only each rank's share.
std::unique_ptr<Exchange> make_bucket_exchange(Context& context, State& state, const ExchangeOptions& options,
                                               const RankActors& actors, Recorder& recorder);

}  // namespace tutti
