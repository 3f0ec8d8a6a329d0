#include "training/engine/engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <map>

#include "recipe/catalog.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

template <class Listeners>
void name_all(const std::string& group, const Listeners& listeners,
              std::vector<std::pair<std::string, Stateful*>>& named) {
  std::map<std::string, int> known;
  for (const auto& one : listeners) {
    const int before = known[one->name()]++;
    named.emplace_back(group + one->name() + (before ? "/" + std::to_string(before) : ""), one.get());
  }
}

// What begins there may be cut short.
bool begins_evaluation(Event event) {
  return event == Event::kEvalBeforeAll || event == Event::kEvalStandaloneStart || event == Event::kEvalStart;
}

// Of those that have the need.
std::vector<std::string> names_of(const Algorithms& algorithms, bool Needs::*need) {
  std::vector<std::string> names;
  for (const auto& algorithm : algorithms)
    if (algorithm->needs().*need) names.push_back(algorithm->name());
  return names;
}

}  // namespace

Engine::Engine(State& state, Logger& logger, Options options)
    : state_(state), logger_(logger), options_(std::move(options)) {
  refuse_several_closures();
  warn_of_interpolations();
}

Engine::~Engine() { close(); }

std::vector<Trace> Engine::run_event(std::string_view event_name) {
  return run_event(event_named(event_name));
}

std::vector<Trace> Engine::run_event(Event event, const EventAgreement& agreement) {
  if (event == Event::kInit) {
    tell_destinations(event);
    for (const auto& callback : options_.callbacks) callback->run_event(event, state_, logger_);
    return run_algorithms(event, agreement);
  }
  auto traces = run_algorithms(event, agreement);
  tell_all(event, agreement);
  return traces;
}

std::vector<Trace> Engine::finish_event(Event event, const std::vector<std::string>& left,
                                        const EventAgreement& agreement) {
  Algorithms algorithms;
  for (const auto& name : left) {
    const auto is_it = [&](const auto& one) { return name_of(*one) == name; };
    const auto found = std::ranges::find_if(options_.algorithms, is_it);
    if (found != options_.algorithms.end())
      algorithms.push_back(*found);
    else if (options_.warn)
      options_.warn(name + " has not acted at " + tutti::name(event) + ", and is not there any more");
  }
  auto traces = act(algorithms, event, agreement);
  tell_all(event, agreement);
  return traces;
}

// All are asked before the first one acts: what one does is not to change whether another runs.
std::vector<Trace> Engine::run_algorithms(Event event, const EventAgreement& agreement) {
  if (options_.algorithms.empty()) return {};
  const Algorithms algorithms = matching(event, agreement);
  if (begins_evaluation(event)) acted_[event] = algorithms;
  return act(algorithms, event, agreement);
}

void Engine::undo(Event begin, Event end, const EventAgreement& agreement) {
  const Algorithms began = std::exchange(acted_[begin], {});
  Algorithms algorithms = matching(end, agreement);
  std::erase_if(algorithms, [&](const auto& one) { return std::ranges::count(began, one) == 0; });
  act(algorithms, end, agreement);
}

// A rank that does not know which match does not know what the others agree on.
Algorithms Engine::matching(Event event, const EventAgreement& agreement) const try {
  Algorithms matching;
  for (const auto& algorithm : options_.algorithms)
    if (algorithm->match(event, state_)) matching.push_back(algorithm);
  return ordered(std::move(matching), event);
} catch (const c10::OutOfMemoryError& error) {
  if (!agreement.acted) throw;
  throw OperatingError(std::string("out of memory where algorithms say whether they act at ") +
                       tutti::name(event) + ": " + error.what_without_backtrace());
}

std::vector<Trace> Engine::act(const Algorithms& algorithms, Event event, const EventAgreement& agreement) {
  std::vector<Trace> traces;
  for (const auto& one : options_.algorithms) {
    const auto place = std::find(algorithms.begin(), algorithms.end(), one);
    const bool ran = place != algorithms.end();
    traces.push_back({one->name(), event, ran, ran ? static_cast<int>(place - algorithms.begin()) : -1});
  }
  if (agreement.acted && !algorithms.empty())
    act_agreed(algorithms, event, agreement);
  else
    for (const auto& one : algorithms) one->apply(event, state_, logger_);
  if (!options_.log_traces) return traces;
  LoggedTraces logged;
  for (const auto& trace : traces)
    if (trace.ran) logged.emplace_back("algorithm_traces/" + trace.algorithm + "/" + tutti::name(event), 1);
  if (!logged.empty()) logger_.log_traces(logged);
  return traces;
}

void Engine::act_agreed(const Algorithms& algorithms, Event event, const EventAgreement& agreement) {
  ActedAlgorithms acted{event, algorithms, algorithms.size(), ""};
  const std::size_t held_back = std::min(agreement.acts(), algorithms.size());
  try {
    for (; acted.left > held_back; --acted.left)
      algorithms[algorithms.size() - acted.left]->apply(event, state_, logger_);
  } catch (const c10::OutOfMemoryError& error) {
    acted.shortage = error.what_without_backtrace();
  }
  agreement.acted(acted);
  if (acted.left > 0) throw OperatingError("out of memory where once there was enough: " + acted.shortage);
}

// What a pass of the user's has put in has the name that it gives itself.
std::string Engine::name_of(const Algorithm& algorithm) const {
  for (const auto& [name, listener] : stateful())
    if (listener == &algorithm) return name;
  return algorithm.name();
}

// Whoever says so is first or last at AFTER_ events too; Composer turns all of them round there.
Algorithms Engine::ordered(Algorithms matching, Event event) const {
  if (is_after(event) && !state_.composer) std::reverse(matching.begin(), matching.end());
  std::stable_partition(matching.begin(), matching.end(),
                        [](const auto& algorithm) { return algorithm->needs().first; });
  std::stable_partition(matching.begin(), matching.end(),
                        [](const auto& algorithm) { return !algorithm->needs().last; });
  if (is_after(event) && state_.composer) std::reverse(matching.begin(), matching.end());
  for (const auto& pass : options_.passes) matching = pass(matching, event);
  return matching;
}

void Engine::tell_all(Event event, const EventAgreement& agreement) {
  std::exception_ptr shortage;
  for (const auto& callback : options_.callbacks) {
    try {
      callback->run_event(event, state_, logger_);
    } catch (const c10::OutOfMemoryError&) {
      if (!agreement.acted) throw;
      if (!shortage) shortage = std::current_exception();
    }
  }
  tell_destinations(event);
  if (shortage) std::rethrow_exception(shortage);
}

void Engine::tell_destinations(Event event) {
  tell_destinations([&](Callback& destination) { destination.run_event(event, state_, logger_); });
}

void Engine::tell_destinations(const std::function<void(Callback&)>& tell) {
  std::erase_if(options_.destinations, [&](const auto& destination) {
    try {
      tell(*destination);
      return false;
    } catch (...) {
      if (options_.warn)
        options_.warn(destination->name() + " is told of no more events: " + handled_error());
      return true;
    }
  });
}

void Engine::warn_of_interpolations() const {
  const auto names = names_of(options_.algorithms, &Needs::interpolates_loss);
  if (names.size() > 1 && options_.warn)
    options_.warn("several algorithms interpolate the loss, which is most likely not what you want: " +
                  joined(names));
}

void Engine::refuse_several_closures() const {
  const auto names = names_of(options_.algorithms, &Needs::closure);
  if (names.size() > 1)
    throw UserError("of the algorithms that make passes of their own in a step a run can have one: " +
                    joined(names));
}

void Engine::plan_reductions() {
  reducing_.clear();
  reductions_ = 0;
  const auto ask = [this](const auto& listeners) {
    for (const auto& one : listeners) {
      const int64_t count = one->reductions(state_);
      TUTTI_ASSERT(count >= 0, one->name() + " declares fewer reductions than none");
      if (count > 0) reducing_.emplace_back(one.get(), static_cast<std::size_t>(count));
      reductions_ += count;
    }
  };
  ask(options_.algorithms);
  ask(options_.callbacks);
}

void Engine::contribute(std::span<double> mine) const {
  TUTTI_ASSERT(std::ssize(mine) == reductions_, "as many as were planned");
  for (const auto& [listener, count] : reducing_) {
    listener->contribute(state_, mine.first(count));
    mine = mine.subspan(count);
  }
}

void Engine::reduced(std::span<const double> sums) {
  TUTTI_ASSERT(std::ssize(sums) == reductions_, "as many as were planned");
  for (const auto& [listener, count] : reducing_) {
    listener->reduced(state_, sums.first(count));
    sums = sums.subspan(count);
  }
}

void Engine::out_of_memory(const std::string& account) {
  for (const auto& callback : options_.callbacks) callback->out_of_memory(state_, logger_, account);
  tell_destinations([&](Callback& destination) { destination.out_of_memory(state_, logger_, account); });
}

bool Engine::listens() const {
  return !(options_.algorithms.empty() && options_.callbacks.empty() && options_.destinations.empty());
}

std::vector<std::pair<std::string, Stateful*>> Engine::stateful() const {
  std::vector<std::pair<std::string, Stateful*>> named;
  name_all("algorithms/", options_.algorithms, named);
  name_all("callbacks/", options_.callbacks, named);
  return named;
}

void Engine::close() {
  if (closed_) return;
  closed_ = true;
  for (const Callbacks* callbacks : {&options_.callbacks, &options_.destinations})
    for (const auto& callback : *callbacks) {
      try {
        callback->close(state_, logger_);
      } catch (...) {
        if (options_.warn) options_.warn(callback->name() + ": " + handled_error());
      }
    }
}

}  // namespace tutti
