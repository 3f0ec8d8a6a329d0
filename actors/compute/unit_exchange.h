#pragma once

#include <memory>

#include "actors/compute/exchange.h"

namespace tutti {

// Sums gradients unit by unit in every microbatch; a rank keeps only its share of the sums: strategies
// `gradients`, `full` and `hybrid`, which also sums over replicas. Buckets of units alternate between two
// blocks of memory that other ranks read; the root unit's bucket has its own block.
//
// Gathers G and reductions R of units have one order on all ranks: ..., G(2), R(3), G(1), R(2), R(1). Before
// a rank waits for one of them, it has requested or serves all earlier ones, so ranks cannot deadlock.
std::unique_ptr<Exchange> make_unit_exchange(Context& context, State& state, const ExchangeOptions& options,
                                             const RankActors& actors, Recorder& recorder);

}  // namespace tutti
