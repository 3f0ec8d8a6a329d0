#include "actors/log_outlets.h"

namespace tutti {

LogOutlets::LogOutlets(const std::vector<ActorId>& writers) {
  for (const ActorId writer : writers) outlets_.push_back({writer});
}

void LogOutlets::start(Context& context, const LogStart& start) {
  for (const auto& outlet : outlets_) context.send(outlet.writer, LogFrom{start});
}

void LogOutlets::send(Context& context, std::vector<LogEntry> entries) {
  if (entries.empty()) return;
  const auto count = static_cast<int64_t>(entries.size());
  const auto shared = std::make_shared<const std::vector<LogEntry>>(std::move(entries));
  for (auto& outlet : outlets_) {
    if (outlet.underway == kMostUnderway) {
      outlet.lost += count;
      continue;
    }
    ++outlet.underway;
    context.send(outlet.writer, Logged{shared, std::exchange(outlet.lost, 0)});
  }
}

void LogOutlets::end(Context& context) {
  for (auto& outlet : outlets_)
    if (outlet.lost > 0)
      context.send(outlet.writer,
                   Logged{std::make_shared<std::vector<LogEntry>>(), std::exchange(outlet.lost, 0)});
}

void LogOutlets::taken(ActorId writer, int count) {
  for (auto& outlet : outlets_)
    if (outlet.writer == writer) outlet.underway -= count;
}

}  // namespace tutti
