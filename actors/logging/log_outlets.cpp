#include "actors/logging/log_outlets.h"

#include "actors/messages/rank_actors.h"

namespace tutti {

LogOutlets::LogOutlets(const RankActors& cast, Log& log) : log_(log) {
  for (std::size_t i = 0; i < cast.log_writers.size(); ++i)
    outlets_.push_back({cast.log_writers[i], cast.log_names.at(i)});
}

void LogOutlets::start(Context& context, const LogStart& start) {
  for (const auto& outlet : outlets_) context.send(outlet.writer, LogFrom{start});
}

void LogOutlets::send(Context& context, std::vector<LogEntry> entries) {
  if (entries.empty()) return;
  const auto shared = std::make_shared<const std::vector<LogEntry>>(std::move(entries));
  for (auto& outlet : outlets_) {
    if (outlet.underway == kMostUnderway) {
      drop(outlet, records_in(*shared));
      continue;
    }
    ++outlet.underway;
    context.send(outlet.writer, Logged{shared});
  }
}

void LogOutlets::drop(Outlet& outlet, int64_t records) {
  outlet.lost += records;
  if (outlet.lost > 0 && !std::exchange(outlet.told, true))
    log_.warning(outlet.name + " does not keep up; records are lost");
}

void LogOutlets::end() {
  for (auto& outlet : outlets_)
    if (const int64_t lost = std::exchange(outlet.lost, 0); lost > 0)
      log_.warning(outlet.name + " lost " + std::to_string(lost) + " records, for which it was too slow");
}

void LogOutlets::taken(ActorId writer, int count) {
  for (auto& outlet : outlets_)
    if (outlet.writer == writer) outlet.underway -= count;
}

}  // namespace tutti
