#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/engine/algorithm.h"
#include "training/engine/callback.h"
#include "training/engine/event.h"
#include "training/engine/logger.h"

namespace tutti {

using Algorithms = std::vector<std::shared_ptr<Algorithm>>;
using Callbacks = std::vector<std::shared_ptr<Callback>>;

// Puts the algorithms of an event into the order in which they run.
using AlgorithmPass = std::function<Algorithms(const Algorithms& algorithms, Event event)>;

// What an algorithm did at an event: whether it matched, and as the how-manieth it ran.
struct Trace {
  std::string algorithm;
  Event event = Event::kInit;
  bool ran = false;
  int order = -1;
};

// Runs what listens to a run's events: composer.core.Engine. At an event every algorithm is asked whether it
// matches; those that do run in an order that passes decide; then callbacks; then log destinations, which are
// callbacks too. At INIT destinations come first and algorithms last.
//
// The passes, in their order: those that need to be first go to the front, those that need to be last to the
// back, the whole is turned round on AFTER_X events, and then the user's own passes.
class Engine {
 public:
  struct Options {
    Algorithms algorithms;
    Callbacks callbacks;
    Callbacks destinations;
    std::vector<AlgorithmPass> passes;             // after the built-in ones
    std::function<void(const std::string&)> warn;  // may be empty
    bool log_traces = false;                       // "algorithm_traces/EMA/batch_end" = 1 where it ran
  };

  // State and logger must outlive the engine. Throws UserError where algorithms exclude each other.
  Engine(State& state, Logger& logger, Options options);
  ~Engine();  // closes
  Engine(const Engine&) = delete;

  // What the algorithms did; empty where there are none. `before_acting` is called before the first algorithm
  // that matches acts. An exception of an algorithm or a callback passes through; that of a destination is a
  // warning, and the destination hears no more.
  std::vector<Trace> run_event(Event event, const std::function<void()>& before_acting = {});
  std::vector<Trace> run_event(std::string_view event_name);

  // Tells every callback that a step's attempt is aborted: Callback::out_of_memory.
  void out_of_memory(const std::string& account);

  // The sums over ranks that algorithms and callbacks declare (Listener::reductions), one after the other's.
  // Before the first step: how many each wants, which then holds.
  void plan_reductions();
  int64_t reductions() const { return reductions_; }  // of all of them
  // This rank's part of a step's, and what all ranks' came to: [reductions].
  void contribute(std::span<double> mine) const;
  void reduced(std::span<const double> sums);

  // Whether there is anything for which events are run.
  bool listens() const;

  // Tells every listener that the run is over, in spite of what any of them throws. Idempotent.
  void close();

  // Algorithms and callbacks, by the names that their state has in a checkpoint: "algorithms/EMA",
  // "callbacks/EarlyStopper", of a second one of that name "callbacks/EarlyStopper/1".
  std::vector<std::pair<std::string, Stateful*>> stateful() const;

  const Algorithms& algorithms() const { return options_.algorithms; }
  const Callbacks& callbacks() const { return options_.callbacks; }

 private:
  std::vector<Trace> run_algorithms(Event event, const std::function<void()>& before_acting);
  void log_traces(const std::vector<Trace>& traces) const;
  Algorithms ordered(Algorithms matching, Event event) const;
  void tell_destinations(Event event);
  void tell_destinations(const std::function<void(Callback&)>& tell);
  void warn_of_interpolations() const;
  void refuse_several_closures() const;

  State& state_;
  Logger& logger_;
  Options options_;
  std::vector<std::pair<Listener*, std::size_t>> reducing_;  // who wants sums, and how many
  int64_t reductions_ = 0;
  bool closed_ = false;
};

}  // namespace tutti
