// Measures an event without listeners, and the events of a step with five callbacks.
#include <benchmark/benchmark.h>

#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

// The events of a step with one microbatch.
constexpr Event kStep[] = {Event::kBeforeDataloader, Event::kAfterDataloader, Event::kBatchStart,
                           Event::kBeforeTrainBatch, Event::kBeforeForward,   Event::kAfterForward,
                           Event::kBeforeLoss,       Event::kAfterLoss,       Event::kBeforeBackward,
                           Event::kAfterBackward,    Event::kAfterTrainBatch, Event::kBatchEnd,
                           Event::kBatchCheckpoint};

class Idle final : public Callback {
 public:
  std::string name() const override { return "Idle"; }
};

void one_event_without_listeners(benchmark::State& bench) {
  State state;
  Logger logger;
  Engine engine(state, logger, {});
  for (auto _ : bench) benchmark::DoNotOptimize(engine.run_event(Event::kBatchEnd));
}
BENCHMARK(one_event_without_listeners);

void a_step_with_five_callbacks(benchmark::State& bench) {
  State state;
  Logger logger;
  Engine::Options listeners;
  for (int i = 0; i < 5; ++i) listeners.callbacks.push_back(std::make_shared<Idle>());
  Engine engine(state, logger, listeners);
  for (auto _ : bench)
    for (const Event event : kStep) benchmark::DoNotOptimize(engine.run_event(event));
}
BENCHMARK(a_step_with_five_callbacks);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
