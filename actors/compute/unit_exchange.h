#pragma once

#include <memory>

#include "actors/compute/exchange.h"

namespace tutti {

// Gradients are summed unit by unit in every microbatch, and a rank keeps its share of the sums alone:
// strategies `gradients`, `full` and `hybrid`, where the sums are added over replicas too. Two units' buckets
// take turns in the memory that other ranks read; the root unit's has its own.
//
// Gathers G and reductions R of units have one order on all ranks: ..., G(2), R(3), G(1), R(2), R(1). Before
// a rank waits for one of them it has asked for all that come before, or serves them, so none waits in a
// circle.
std::unique_ptr<Exchange> make_unit_exchange(Context& context, State& state, const ExchangeOptions& options,
                                             const RankActors& actors, Recorder& recorder);

}  // namespace tutti
