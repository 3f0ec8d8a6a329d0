#pragma once

#include <functional>
#include <map>
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

// What the algorithms of an event came to, before callbacks hear of it.
struct ActedAlgorithms {
  Event event = Event::kInit;
  const Algorithms& order;  // all that matched
  std::size_t left = 0;     // of these, from the end, that have not acted: the first of them had no memory
  std::string shortage;     // what it ran out with, or ""
};
// Where several ranks go on by what an algorithm changes, they agree that it could.
struct EventAgreement {
  // Before the first acts, where any matches. How many do not, as if they had no memory: of a replay.
  std::function<std::size_t()> acts;
  std::function<void(const ActedAlgorithms&)> acted;  // after the last; throws where `left` is not 0
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

  // What the algorithms did; empty where there are none. An exception of a listener passes through, that of a
  // destination is a warning, and it hears no more. With an agreement an algorithm's c10::OutOfMemoryError
  // does not: it is told to `acted`. Where it is said of which match, that is an OperatingError. And a
  // callback's passes through only when all others have heard of the event.
  std::vector<Trace> run_event(Event event, const EventAgreement& agreement = {});
  std::vector<Trace> run_event(std::string_view event_name);

  // The rest of an event at which algorithms of an earlier start had no memory: those that were left, by the
  // names that they have in `stateful`, and all callbacks. Of a name that is not known it warns.
  std::vector<Trace> finish_event(Event event, const std::vector<std::string>& left,
                                  const EventAgreement& agreement = {});

  // What began with `begin` is cut short: the algorithms that acted there act at `end`, where they match, to
  // undo it. Nobody else hears of that.
  void undo(Event begin, Event end, const EventAgreement& agreement);

  // Tells every callback that a step's attempt is void: Callback::out_of_memory.
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

  std::string name_of(const Algorithm& algorithm) const;

  const Algorithms& algorithms() const { return options_.algorithms; }
  const Callbacks& callbacks() const { return options_.callbacks; }

 private:
  std::vector<Trace> run_algorithms(Event event, const EventAgreement& agreement);
  Algorithms matching(Event event, const EventAgreement& agreement) const;
  std::vector<Trace> act(const Algorithms& algorithms, Event event, const EventAgreement& agreement);
  void act_agreed(const Algorithms& algorithms, Event event, const EventAgreement& agreement);
  Algorithms ordered(Algorithms matching, Event event) const;
  void tell_all(Event event, const EventAgreement& agreement);
  void tell_destinations(Event event);
  void tell_destinations(const std::function<void(Callback&)>& tell);
  void warn_of_interpolations() const;
  void refuse_several_closures() const;

  State& state_;
  Logger& logger_;
  Options options_;
  std::vector<std::pair<Listener*, std::size_t>> reducing_;  // who wants sums, and how many
  int64_t reductions_ = 0;
  std::map<Event, Algorithms> acted_;  // at the beginnings of evaluations, the last time
  bool closed_ = false;
};

}  // namespace tutti
