#include "training/engine/engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "data/dataset.h"
#include "recipe/catalog.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "training/state.h"

namespace tutti {
namespace {

template <class Listeners>
void name_all(const std::string& group, const Listeners& listeners,
              std::vector<std::pair<std::string, Stateful*>>& named) {
  std::map<std::string, int> known;
  for (const auto& listener : listeners) {
    const int before = known[listener->name()]++;
    named.emplace_back(group + listener->name() + (before ? "/" + std::to_string(before) : ""),
                       listener.get());
  }
}

// Puts each algorithm behind those that it acts after.
void put_behind(Algorithms& algorithms) {
  for (std::size_t i = algorithms.size(); i-- > 0;) {
    const std::vector<std::string> before = algorithms[i]->needs().after;
    std::size_t last = i;
    for (std::size_t j = i + 1; j < algorithms.size(); ++j)
      if (std::ranges::count(before, algorithms[j]->name()) > 0) last = j;
    std::rotate(algorithms.begin() + i, algorithms.begin() + i + 1, algorithms.begin() + last + 1);
  }
}

// Errors that are not tutti's own do not say who caused them. A lack of memory is handled by its type.
template <class Act>
void act(const std::string& who, Event event, const Act& act) try {
  act();
} catch (const RunError&) {
  throw;
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw;
  const bool is_torch = dynamic_cast<const c10::Error*>(&error);
  throw OperatingError(who + " at " + name(event) + ": " + own_words(error),
                       is_torch ? EndKind::kOperatingError : end_by(error).kind);
}

}  // namespace

void Algorithm::fail(const std::string& message) const {
  if (section_.position.file.empty()) throw UserError(name() + ": " + message);
  section_.fail(message);
}

Engine::Engine(State& state, Logger& logger, Options options)
    : state_(state), logger_(logger), options_(std::move(options)) {
  state_.services->on_warning = options_.warn;
  refuse_several_closures();
  refuse_excluded();
  warn_of_interpolations();
}

Engine::~Engine() { close(); }

std::vector<Trace> Engine::run_event(std::string_view event_name) {
  return run_event(event_named(event_name));
}

std::vector<Trace> Engine::run_event(Event event, const std::function<void()>& before_acting) {
  const auto notify_callbacks = [&] {
    for (const auto& callback : options_.callbacks)
      act(callback->name(), event, [&] { callback->run_event(event, state_, logger()); });
  };
  const auto run_algorithms = [&] {
    const Algorithms acting = matching(event);
    if (!acting.empty() && before_acting) before_acting();
    return run(acting, event);
  };
  if (event == Event::kInit) {
    notify_destinations(event);
    notify_callbacks();
    return run_algorithms();
  }
  auto traces = run_algorithms();
  notify_callbacks();
  notify_destinations(event);
  return traces;
}

// All algorithms are asked before any acts, so that no action changes a match.
Algorithms Engine::matching(Event event) const {
  if (options_.algorithms.empty()) return {};
  Algorithms matching;
  for (const auto& algorithm : options_.algorithms)
    if (algorithm->match(event, state_)) matching.push_back(algorithm);
  return ordered(std::move(matching), event);
}

std::vector<Trace> Engine::run(const Algorithms& acting, Event event) {
  std::vector<Trace> traces;
  for (const auto& algorithm : options_.algorithms) {
    const auto position = std::ranges::find(acting, algorithm);
    const bool ran = position != acting.end();
    traces.push_back({algorithm->name(), event, ran, ran ? static_cast<int>(position - acting.begin()) : -1});
  }
  for (const auto& algorithm : acting) {
    act(algorithm->name(), event, [&] { algorithm->apply(event, state_, logger()); });
    state_.acts_on_parameters += may_change_parameters(event) && algorithm->writes_parameters();
  }
  if (options_.log_traces) log_traces(traces);
  return traces;
}

void Engine::log_traces(const std::vector<Trace>& traces) const {
  LoggedTraces logged;
  for (const auto& trace : traces)
    if (trace.ran) logged.emplace_back("algorithm_traces/" + trace.algorithm + "/" + name(trace.event), 1);
  if (!logged.empty()) logger().log_traces(logged);
}

// after, first and last also hold at reversed events; Composer reverses all there.
Algorithms Engine::ordered(Algorithms matching, Event event) const {
  const bool all_reversed = is_after(event) && state_.composer;
  if (is_after(event) && !all_reversed) std::reverse(matching.begin(), matching.end());
  if (!all_reversed) put_behind(matching);
  std::stable_partition(matching.begin(), matching.end(),
                        [](const auto& algorithm) { return algorithm->needs().first; });
  std::stable_partition(matching.begin(), matching.end(),
                        [](const auto& algorithm) { return !algorithm->needs().last; });
  if (all_reversed) std::reverse(matching.begin(), matching.end());
  for (const auto& pass : options_.passes) matching = pass(matching, event);
  return matching;
}

void Engine::notify_destinations(Event event) {
  notify_destinations([&](Callback& destination) { destination.run_event(event, state_, logger()); });
}

void Engine::notify_destinations(const std::function<void(Callback&)>& notify) {
  std::erase_if(options_.destinations, [&](const auto& destination) {
    try {
      notify(*destination);
      return false;
    } catch (...) {
      if (options_.warn) options_.warn(destination->name() + " gets no more events: " + handled_error());
      return true;
    }
  });
}

void Engine::warn_of_interpolations() const {
  std::vector<std::string> names;
  for (const auto& algorithm : options_.algorithms)
    if (algorithm->needs().interpolates_loss) names.push_back(algorithm->name());
  if (names.size() > 1 && options_.warn)
    options_.warn("several algorithms interpolate the loss, which is probably a mistake: " + joined(names));
}

void Engine::refuse_several_closures() const {
  const Algorithm* first = nullptr;
  for (const auto& algorithm : options_.algorithms) {
    if (!algorithm->needs().closure) continue;
    if (first)
      algorithm->fail(algorithm->name() + " cannot be combined with " + first->name() +
                      ": only one algorithm of a run can make additional passes in a step");
    first = algorithm.get();
  }
}

void Engine::refuse_excluded() const {
  for (const auto& algorithm : options_.algorithms) {
    const Needs needs = algorithm->needs();
    for (const auto& other : options_.algorithms)
      if (const auto exclusion = needs.excludes.find(other->name());
          exclusion != needs.excludes.end() && other != algorithm)
        algorithm->fail(algorithm->name() + " cannot be combined with " + other->name() + ": " +
                        exclusion->second);
  }
}

void Engine::plan_reductions() {
  reducing_.clear();
  reductions_ = 0;
  const auto ask = [this](const auto& listeners) {
    for (const auto& listener : listeners) {
      const int64_t count = listener->reductions(state_);
      TUTTI_ASSERT(count >= 0, listener->name() + " declares a negative number of reductions");
      if (count > 0) reducing_.emplace_back(listener.get(), static_cast<std::size_t>(count));
      reductions_ += count;
    }
  };
  ask(options_.algorithms);
  ask(options_.callbacks);
}

void Engine::contribute(std::span<double> values) const {
  TUTTI_ASSERT(std::ssize(values) == reductions_, "wrong number of reductions");
  for (const auto& [listener, count] : reducing_) {
    listener->contribute(state_, values.first(count));
    values = values.subspan(count);
  }
}

void Engine::reduced(std::span<const double> sums) {
  TUTTI_ASSERT(std::ssize(sums) == reductions_, "wrong number of reductions");
  for (const auto& [listener, count] : reducing_) {
    listener->reduced(state_, sums.first(count));
    sums = sums.subspan(count);
  }
}

void Engine::require() const {
  for (const auto& algorithm : options_.algorithms) algorithm->require(state_);
  for (const auto& callback : options_.callbacks) callback->require(state_);
  if (state_.dataset && !options_.algorithms.empty()) try_sample();
}

void Engine::try_sample() const {
  const int64_t first = 0;
  Batch sample = state_.dataset->get({&first, 1}, {state_.seed});  // on the host until transforms are over
  std::vector<std::string> tried;
  for (const auto& algorithm : in_order_of_action()) {
    try {
      if (algorithm->tried_at() == Event::kAfterDataloader) sample = state_.device.take(sample);
      if (!algorithm->try_on(state_, sample)) continue;
      state_.try_forward(state_.device.take(sample));
    } catch (const std::exception& error) {
      algorithm->fail((tried.empty() ? "" : "after " + joined(tried) + ": ") + one_line(error));
    }
    tried.push_back(algorithm->name());
  }
}

Algorithms Engine::in_order_of_action() const {
  Algorithms all;
  for (const Event event : {Event::kInit, Event::kFitStart, Event::kAfterDataloader}) {
    Algorithms at_event;
    std::ranges::copy_if(options_.algorithms, std::back_inserter(at_event),
                         [&](const auto& one) { return one->tried_at() == event; });
    std::ranges::move(ordered(std::move(at_event), event), std::back_inserter(all));
  }
  return all;
}

int64_t Engine::forwards() const {
  int64_t count = 0;
  for (const auto& algorithm : options_.algorithms) count += algorithm->forwards(state_);
  return count;
}

void Engine::out_of_memory(const std::string& account) {
  for (const auto& callback : options_.callbacks) callback->out_of_memory(state_, logger_, account);
  notify_destinations([&](Callback& destination) { destination.out_of_memory(state_, logger_, account); });
}

bool Engine::listens() const {
  return !(options_.algorithms.empty() && options_.callbacks.empty() && options_.destinations.empty());
}

bool Engine::acts(Event event) const {
  const auto acts = [event](const auto& callback) { return callback->acts(event); };
  return reductions_ > 0 || std::ranges::any_of(options_.callbacks, acts) ||
         std::ranges::any_of(options_.destinations, acts) ||
         std::ranges::any_of(options_.algorithms, [&](const auto& one) { return one->match(event, state_); });
}

std::vector<std::pair<std::string, Stateful*>> Engine::stateful() const {
  std::vector<std::pair<std::string, Stateful*>> named;
  name_all("algorithms/", options_.algorithms, named);
  name_all("callbacks/", options_.callbacks, named);
  return named;
}

std::map<std::string, std::string> Engine::state() const {
  std::map<std::string, std::string> states;
  for (const auto& [name, listener] : stateful())
    if (std::string text = listener->state(); !text.empty()) states[name] = std::move(text);
  return states;
}

void Engine::restore(const std::map<std::string, std::string>& saved) const {
  for (const auto& [name, listener] : stateful())
    if (const auto state = saved.find(name); state != saved.end()) listener->restore(state->second);
}

void Engine::close() {
  if (closed_) return;
  closed_ = true;
  for (const Callbacks* callbacks : {&options_.callbacks, &options_.destinations})
    for (const auto& callback : *callbacks) {
      try {
        callback->close(state_, logger());
      } catch (...) {
        if (options_.warn) options_.warn(callback->name() + ": " + handled_error());
      }
    }
}

}  // namespace tutti
