#include "actors/messages/heartbeat.h"

#include <cstdio>
#include <sstream>

namespace tutti {
namespace {

constexpr const char* kTag = "heartbeat";
constexpr int kLookBack = 1024;  // events; Sync may record a packet of every other rank after the last one

}  // namespace

bool Heartbeat::unhurried() const {
  using enum TraceKind;
  return last == kVerifies || last == kPrepares || last == kDone || last == kWritesText ||
         last == kPredicts || last == kWaitsForDisk;
}

std::string Heartbeat::text() const {
  char age[32];
  std::snprintf(age, sizeof age, "%.1f s ago", age_s);
  return "step " + std::to_string(step) + ", " + name(last) + ", " + age +
         (waiting ? ", waiting for other ranks" : "");
}

std::string heartbeat_text(const Recorder& recorder, TimePoint now, bool waiting) {
  std::ostringstream out;
  TraceEvent last{now, TraceKind::kStarts, 0};
  for (const TraceEvent& event : recorder.last(kLookBack))
    if (actor_of(event.kind) == ActorKind::kCompute) last = event;
  out << kTag << ' ' << last.step << ' ' << seconds(now - last.time) << ' ' << waiting << ' '
      << static_cast<int>(last.kind);
  return out.str();
}

std::optional<Heartbeat> parse_heartbeat(const std::string& packet) {
  std::istringstream in(packet);
  std::string tag;
  Heartbeat heartbeat;
  if (!(in >> tag) || tag != kTag) return std::nullopt;
  int last = 0;
  if (!(in >> heartbeat.step >> heartbeat.age_s >> heartbeat.waiting >> last)) return std::nullopt;
  if (last < 0 || last > static_cast<int>(TraceKind::kCheckpointFailed)) return std::nullopt;
  heartbeat.last = static_cast<TraceKind>(last);
  return heartbeat;
}

}  // namespace tutti
