#include "analysis/control_arrows.h"

#include <algorithm>

#include "io/journal/journal.h"
#include "io/journal/journal_reader.h"

namespace tutti {
namespace {

// Sender and receiver of a control packet; none for other events.
std::optional<std::pair<int64_t, int64_t>> route_of(int rank, const Happening& happening) {
  if (happening.actor != "sync") return std::nullopt;
  if (happening.what == kControlSent) return std::pair<int64_t, int64_t>(rank, happening.detail);
  if (happening.what == kControlReceived) return std::pair<int64_t, int64_t>(happening.detail, rank);
  return std::nullopt;
}

}  // namespace

ControlArrows::ControlArrows(const RecordedRun& run, const std::vector<TimePoint>& zeros) {
  for (int r = 0; r < run.world(); ++r) {
    JournalCursor cursor(run.path(r));
    while (const auto record = cursor.next())
      if (const auto* event = std::get_if<JournalEvent>(&*record)) count(r, event->happening, zeros.at(r));
  }
  int64_t first = 1;
  for (auto& [ends, route] : routes_) {
    route.sent.resize(std::min(route.sent.size(), route.received));
    route.first = first;
    first += static_cast<int64_t>(route.sent.size());
  }
}

void ControlArrows::count(int rank, const Happening& happening, TimePoint zero) {
  const auto ends = route_of(rank, happening);
  if (!ends) return;
  Route& route = routes_[*ends];
  if (happening.what == kControlSent)
    route.sent.push_back(happening.time - zero);
  else
    ++route.received;
}

// A journal may have grown since the constructor counted: packets beyond the count have no arrows.
std::optional<ControlArrows::End> ControlArrows::next(int rank, const Happening& happening) {
  const auto ends = route_of(rank, happening);
  const auto found = ends ? routes_.find(*ends) : routes_.end();
  if (found == routes_.end()) return std::nullopt;
  Route& route = found->second;
  const bool leaves = happening.what == kControlSent;
  std::size_t& used = leaves ? route.left : route.arrived;
  if (used == route.sent.size()) return std::nullopt;
  const std::size_t index = used++;
  return End{route.first + static_cast<int64_t>(index), leaves, route.sent[index]};
}

}  // namespace tutti
