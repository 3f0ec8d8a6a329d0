// Measures messages between two actors of the ThreadScheduler. mailbox_caf_bench.cpp does the same with CAF.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <chrono>
#include <memory>

#include "runtime/actor/scheduler.h"
#include "tests/runtime/actor/cast.h"

namespace tutti {
namespace {

// Receives Numbers and replies to Questions; stops at a negative Number.
class Sink final : public Actor {
 public:
  void receive(Context& context, Envelope& envelope) override {
    if (auto* number = envelope.message.get_if<Number>()) {
      if (number->value < 0) context.stop();
    } else if (auto* question = envelope.message.get_if<Question>()) {
      context.reply(envelope, Answer{question->value});
    }
  }
};

// Runs `drive` with a Sink in a new scheduler.
template <class Drive>
void run_pair(Nanoseconds spin, int capacity, Drive drive) {
  ThreadScheduler scheduler(spin);
  const ActorId sink = scheduler.reserve("sink", 0, {.requests = capacity});
  const ActorId driver = scheduler.reserve("driver", 0);
  scheduler.install(sink, std::make_unique<Sink>());
  play(scheduler, driver, {.start = [&](Context& context) {
         drive(context, sink);
         context.send(sink, Number{-1});
         context.stop();
       }});
  scheduler.run();
}

// Measures until the reader has handled all messages.
void one_to_one(benchmark::State& state) {
  constexpr int64_t kMany = 2'000'000;
  for (auto _ : state) {
    run_pair(ThreadScheduler::kDefaultSpin, static_cast<int>(state.range(0)),
             [](Context& context, ActorId sink) {
               for (int64_t i = 0; i < kMany; ++i) context.send(sink, Number{i});
             });
  }
  state.SetItemsProcessed(state.iterations() * kMany);
}
BENCHMARK(one_to_one)->Arg(256)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);

void ask(benchmark::State& state, Nanoseconds spin, Nanoseconds pause) {
  run_pair(spin, MailboxCapacity().requests, [&](Context& context, ActorId sink) {
    int64_t next = 0;
    for (auto _ : state) {
      if (pause > Nanoseconds(0)) context.sleep(pause);
      const TimePoint start = context.now();
      const Answer answer = context.ask<Answer>(sink, Question{++next});
      state.SetIterationTime(seconds(context.now() - start));
      if (answer.value != next) state.SkipWithError("a wrong answer");
    }
  });
}

void ask_spinning(benchmark::State& state) { ask(state, ThreadScheduler::kDefaultSpin, Nanoseconds(0)); }
BENCHMARK(ask_spinning)->UseManualTime()->Unit(benchmark::kMicrosecond);

void ask_without_spinning(benchmark::State& state) { ask(state, Nanoseconds(0), Nanoseconds(0)); }
BENCHMARK(ask_without_spinning)->UseManualTime()->Unit(benchmark::kMicrosecond);

// Asks an actor that has slept for a while.
void ask_asleep(benchmark::State& state) {
  ask(state, ThreadScheduler::kDefaultSpin, std::chrono::milliseconds(1));
}
BENCHMARK(ask_asleep)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(2000);

void ask_on_one_core(benchmark::State& state) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  ask(state, ThreadScheduler::kDefaultSpin, Nanoseconds(0));
  sched_setaffinity(0, sizeof before, &before);
}
BENCHMARK(ask_on_one_core)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
