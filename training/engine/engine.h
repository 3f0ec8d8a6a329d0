#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/log.h"
#include "training/engine/algorithm.h"
#include "training/engine/callback.h"
#include "training/engine/event.h"
#include "training/engine/logger.h"

namespace tutti {

using Algorithms = std::vector<std::shared_ptr<Algorithm>>;
using Callbacks = std::vector<std::shared_ptr<Callback>>;

// Orders the algorithms of an event.
using AlgorithmPass = std::function<Algorithms(const Algorithms& algorithms, Event event)>;

// What an algorithm did at an event.
struct Trace {
  std::string algorithm;
  Event event = Event::kInit;
  bool ran = false;  // the algorithm matched
  int order = -1;    // position in the order of execution; -1 = did not run
};

// Runs algorithms, callbacks and log destinations (which are callbacks) at events: composer.core.Engine. At
// each event all algorithms are asked for a match; matching algorithms run in the order of the passes, then
// callbacks, then destinations. At INIT destinations come first and algorithms last.
//
// Passes, in order: algorithms that need to be first go to the front, algorithms that need to be last to the
// back, algorithms that act after other algorithms behind those, AFTER_X events reverse the order, then the
// user's passes.
class Engine {
 public:
  struct Options {
    Algorithms algorithms;
    Callbacks callbacks;
    Callbacks destinations;
    std::vector<AlgorithmPass> passes;  // after the built-in ones
    Warn warn;                          // may be empty
    bool log_traces = false;            // "algorithm_traces/EMA/batch_end" = 1 if the algorithm ran
  };

  // State and logger must outlive the engine. Throws UserError if algorithms exclude each other.
  Engine(State& state, Logger& logger, Options options);
  ~Engine();  // closes
  Engine(const Engine&) = delete;

  // Returns what the algorithms did. `before_acting` is called before the first matching algorithm acts. An
  // exception of an algorithm or a callback passes through. An exception of a destination becomes a warning,
  // and the destination gets no more events.
  std::vector<Trace> run_event(Event event, const std::function<void()>& before_acting = {});
  std::vector<Trace> run_event(std::string_view event_name);

  // Calls Listener::require of every listener. Then one sample of the training data, if any, goes through all
  // algorithms, in their order of action (Algorithm::try_on), and the model must accept each result. An error
  // names the last algorithm.
  void require() const;

  // Calls Callback::out_of_memory of every callback and destination.
  void out_of_memory(const std::string& account);

  // The sums over ranks of all listeners (Listener::reductions), concatenated. plan_reductions fixes the
  // counts before the first step.
  void plan_reductions();
  int64_t reductions() const { return reductions_; }  // total
  // This rank's numbers of a step, and the sums of all ranks: [reductions].
  void contribute(std::span<double> values) const;
  void reduced(std::span<const double> sums);

  // Forwards before the microbatches of the coming step (Algorithm::forwards), of all algorithms.
  int64_t forwards() const;

  // True if there is any listener or destination.
  bool listens() const;
  // True if an algorithm would act at the event now, a callback or destination may (Callback::acts), or
  // listeners have sums.
  bool acts(Event event) const;

  // False: what listeners log until the next call is dropped.
  void set_logging(bool logs) { logs_ = logs; }

  // Closes all callbacks and destinations; exceptions become warnings. Idempotent.
  void close();

  // Algorithms and callbacks by their names in checkpoints: "algorithms/EMA", "callbacks/EarlyStopper"; the
  // second of a name: "callbacks/EarlyStopper/1".
  std::vector<std::pair<std::string, Stateful*>> stateful() const;
  // Their states, without empty ones.
  std::map<std::string, std::string> state() const;
  void restore(const std::map<std::string, std::string>& saved) const;

  const Algorithms& algorithms() const { return options_.algorithms; }
  const Callbacks& callbacks() const { return options_.callbacks; }

 private:
  Algorithms matching(Event event) const;  // ordered
  std::vector<Trace> run(const Algorithms& acting, Event event);
  void log_traces(const std::vector<Trace>& traces) const;
  Algorithms ordered(Algorithms matching, Event event) const;
  Algorithms in_order_of_action() const;
  void try_sample() const;
  void notify_destinations(Event event);
  void notify_destinations(const std::function<void(Callback&)>& notify);
  void warn_of_interpolations() const;
  void refuse_several_closures() const;
  void refuse_excluded() const;

  Logger& logger() const { return logs_ ? logger_ : no_logger_; }

  State& state_;
  Logger& logger_;
  mutable Logger no_logger_;
  bool logs_ = true;
  Options options_;
  std::vector<std::pair<Listener*, std::size_t>> reducing_;  // listeners with sums, and the counts
  int64_t reductions_ = 0;
  bool closed_ = false;
};

}  // namespace tutti
