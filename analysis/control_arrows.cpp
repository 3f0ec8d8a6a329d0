#include "analysis/control_arrows.h"

#include <algorithm>

#include "io/journal/journal_reader.h"
#include "runtime/trace_event.h"

namespace tutti {
namespace {

bool is_sent(const JournalEvent& event) { return event.kind == name(TraceKind::kControlSent); }

// Sender and receiver of a control packet; none for other events.
std::optional<std::pair<int64_t, int64_t>> route_of(int rank, const JournalEvent& event) {
  if (is_sent(event)) return std::pair<int64_t, int64_t>(rank, event.detail);
  if (event.kind == name(TraceKind::kControlReceived)) return std::pair<int64_t, int64_t>(event.detail, rank);
  return std::nullopt;
}

}  // namespace

ControlArrows::ControlArrows(const RecordedRun& run, const std::vector<TimePoint>& zeros) {
  for (int r = 0; r < run.world(); ++r) {
    JournalCursor cursor(run.path(r));
    while (const auto record = cursor.next())
      if (const auto* event = std::get_if<JournalEvent>(&*record)) count(r, *event, zeros.at(r));
  }
  int64_t first = 1;
  for (auto& [ends, route] : routes_) {
    route.sent.resize(std::min(route.sent.size(), route.received));
    route.first = first;
    first += static_cast<int64_t>(route.sent.size());
  }
}

void ControlArrows::count(int rank, const JournalEvent& event, TimePoint zero) {
  const auto ends = route_of(rank, event);
  if (!ends) return;
  Route& route = routes_[*ends];
  if (is_sent(event))
    route.sent.push_back(event.time - zero);
  else
    ++route.received;
}

// A journal may have grown since the constructor counted: packets beyond the count have no arrows.
std::optional<ControlArrows::End> ControlArrows::next(int rank, const JournalEvent& event) {
  const auto ends = route_of(rank, event);
  const auto known = ends ? routes_.find(*ends) : routes_.end();
  if (known == routes_.end()) return std::nullopt;
  Route& route = known->second;
  const bool leaves = is_sent(event);
  std::size_t& used = leaves ? route.left : route.arrived;
  if (used == route.sent.size()) return std::nullopt;
  const std::size_t index = used++;
  return End{route.first + static_cast<int64_t>(index), leaves, route.sent[index]};
}

}  // namespace tutti
