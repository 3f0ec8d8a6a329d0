#include "actors/messages/heartbeat.h"

#include <cstdio>
#include <sstream>

namespace tutti {
namespace {

constexpr const char* kTag = "heartbeat";
constexpr int kLookBack = 1024;  // Sync may have had a packet of every other rank since

}  // namespace

bool Heartbeat::unhurried() const {
  return what == kPrepares || what == kDone || what == kWritesText || what == kPredicts ||
         what == kWaitsForDisk || what == kWaitsForLogs;
}

std::string Heartbeat::text() const {
  char age[32];
  std::snprintf(age, sizeof age, "%.1f s ago", age_s);
  return "step " + std::to_string(step) + ", " + what + ", " + age +
         (waiting ? ", waiting for other ranks" : "");
}

std::string heartbeat_text(const Recorder& recorder, TimePoint now, bool waiting) {
  std::ostringstream out;
  Happening last{now, "compute", "starting", 0, 0};
  for (const auto& happening : recorder.last(kLookBack))
    if (happening.actor == "compute") last = happening;
  out << kTag << ' ' << last.step << ' ' << seconds(now - last.time) << ' ' << waiting << ' ' << last.what;
  return out.str();
}

std::optional<Heartbeat> parse_heartbeat(const std::string& packet) {
  std::istringstream in(packet);
  std::string tag;
  Heartbeat heartbeat;
  if (!(in >> tag) || tag != kTag) return std::nullopt;
  if (!(in >> heartbeat.step >> heartbeat.age_s >> heartbeat.waiting)) return std::nullopt;
  std::getline(in >> std::ws, heartbeat.what);
  return heartbeat;
}

}  // namespace tutti
