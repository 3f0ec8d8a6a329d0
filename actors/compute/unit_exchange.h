#pragma once

#include <memory>

#include "actors/compute/exchange.h"

namespace tutti {

// Gradients are summed unit by unit in every microbatch, and a rank keeps its share of the sums alone:
// strategies `gradients`, `full` and `hybrid`, where the sums are added over replicas too. Two units' buckets
// take turns in the memory that other ranks read; the root unit's has its own.
//
// No rank waits for a reduction before it has asked for the gathers and the reductions that come earlier in
// the order of backward, so none waits in a circle.
std::unique_ptr<Exchange> make_unit_exchange(Context& context, State& state, const ExchangeOptions& options,
                                             const RankActors& actors, Recorder& recorder);

}  // namespace tutti
