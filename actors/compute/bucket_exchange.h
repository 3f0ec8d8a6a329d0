#pragma once

#include <memory>

#include "actors/compute/exchange.h"

namespace tutti {

// Gradients of the whole batch are summed in buckets of all parameters: strategies `none` and `optimizer`,
// which reduces each rank's share alone.
std::unique_ptr<Exchange> make_bucket_exchange(Context& context, State& state, const ExchangeOptions& options,
                                               const RankActors& actors, Recorder& recorder);

}  // namespace tutti
