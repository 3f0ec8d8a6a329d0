// Measures the same as mailbox_bench.cpp with the C++ Actor Framework 0.17: a scheduled sink, driven from a
// separate thread.
#include <benchmark/benchmark.h>

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <thread>

namespace {

using Ask = caf::atom_constant<caf::atom("ask")>;

caf::behavior sink(caf::event_based_actor*) {
  return {
      [](int64_t) {},
      [](Ask, int64_t value) { return value; },
  };
}

int64_t ask(caf::scoped_actor& self, const caf::actor& sink, int64_t value) {
  int64_t answer = -1;
  self->request(sink, caf::infinite, Ask::value, value)
      .receive([&](int64_t got) { answer = got; }, [](const caf::error&) {});
  return answer;
}

void caf_one_to_one(benchmark::State& state) {
  constexpr int64_t kMany = 2'000'000;
  caf::actor_system_config config;
  caf::actor_system system(config);
  const caf::actor reader = system.spawn(sink);
  caf::scoped_actor self(system);
  for (auto _ : state) {
    for (int64_t i = 0; i < kMany; ++i) self->send(reader, i);
    ask(self, reader, 0);
  }
  state.SetItemsProcessed(state.iterations() * kMany);
}
BENCHMARK(caf_one_to_one)->UseRealTime()->Unit(benchmark::kMillisecond);

void ask_after(benchmark::State& state, std::chrono::nanoseconds pause) {
  using clock = std::chrono::steady_clock;
  caf::actor_system_config config;
  caf::actor_system system(config);
  const caf::actor reader = system.spawn(sink);
  caf::scoped_actor self(system);
  int64_t next = 0;
  for (auto _ : state) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const clock::time_point start = clock::now();
    const int64_t answer = ask(self, reader, next);
    state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
    if (answer != next++) state.SkipWithError("a wrong answer");
  }
}

void caf_ask(benchmark::State& state) { ask_after(state, {}); }
BENCHMARK(caf_ask)->UseManualTime()->Unit(benchmark::kMicrosecond);

void caf_ask_asleep(benchmark::State& state) { ask_after(state, std::chrono::milliseconds(1)); }
BENCHMARK(caf_ask_asleep)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(2000);

}  // namespace
