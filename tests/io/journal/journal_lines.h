#pragma once

#include <string>
#include <variant>
#include <vector>

#include "io/journal/journal_reader.h"

namespace tutti {

// A record as a line that has all of it; times in ticks of 100 ns.
struct JournalLine {
  static std::string tick(TimePoint time) {
    return " @" + std::to_string(time.time_since_epoch().count() / 100) +
           (time.time_since_epoch().count() % 100 == 0 ? "" : " (not rounded)");
  }
  std::string operator()(const JournalHead& head) const { return "head " + head.json; }
  std::string operator()(const JournalDelivery& d) const {
    return "delivery " + std::string(d.to) + "<" + std::string(d.from) + " " + std::string(d.message) +
           tick(d.time);
  }
  std::string operator()(const JournalEvent& h) const {
    return "event " + std::string(h.actor) + " " + std::string(h.kind) + " " + std::to_string(h.step) + " " +
           std::to_string(h.detail) + tick(h.time);
  }
  std::string operator()(const JournalDigest& digest) const {
    std::string line = "digest " + std::string(digest.key) + " " + std::to_string(digest.step) + " " +
                       std::to_string(digest.value);
    for (const uint16_t part : digest.parts) line += " " + std::to_string(part);
    return line;
  }
  std::string operator()(const JournalParts& parts) const {
    std::string line = "parts " + std::string(parts.key);
    for (const std::string& name : parts.names) line += " " + name;
    return line;
  }
  std::string operator()(const JournalInput& input) const {
    std::string line = "input " + std::string(input.what);
    for (const std::byte byte : input.bytes) line += " " + std::to_string(std::to_integer<int>(byte));
    return line;
  }
  std::string operator()(const JournalEnd& end) const { return "end " + end.text; }
  std::string operator()(const JournalIncomplete& incomplete) const { return "incomplete " + incomplete.why; }
};

inline std::string line_of(const JournalRecord& record) { return std::visit(JournalLine{}, record); }

// All that the cursor still gives.
inline std::vector<std::string> lines_of(JournalCursor& cursor) {
  std::vector<std::string> lines;
  while (const auto record = cursor.next()) lines.push_back(line_of(*record));
  return lines;
}

inline std::vector<std::string> lines_of(const std::string& path) {
  JournalCursor cursor(path);
  return lines_of(cursor);
}

}  // namespace tutti
