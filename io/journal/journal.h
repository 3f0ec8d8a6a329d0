#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/recorder.h"

// What a rank writes down while it trains; docs/journal.md describes the bytes. Texts that are views are
// names: they live as long as the cursor that gave them.

namespace tutti {

// What was needed to start the run, as one JSON text; the first record of every journal.
struct JournalHead {
  std::string json;
};

// An actor was handed a message; `from` is "" where nobody of the cast sent it.
struct JournalDelivery {
  std::string_view to;
  std::string_view from;
  std::string_view message;
  TimePoint time;  // as all times of a journal, rounded down to 100 ns
};

struct JournalEvent {
  Happening happening;
};

// A hash of something that is the same in every run of the job. The parts, one for each name that the last
// JournalParts of the same thing gave, tell where two differ.
struct JournalDigest {
  std::string_view thing;
  int64_t step = -1;
  uint64_t value = 0;
  std::vector<uint16_t> parts;
};

struct JournalParts {
  std::string_view thing;
  std::vector<std::string> names;
};

// What the outside answered: a clock's value, a disk's error.
struct JournalAnswer {
  std::string_view what;
  std::vector<std::byte> bytes;
};

// How the run ended; absent when it was killed.
struct JournalEnd {
  std::string text;
};

// The run went on, but could not be written down any more, and why.
struct JournalIncomplete {
  std::string why;
};

using JournalRecord = std::variant<JournalHead, JournalDelivery, JournalEvent, JournalDigest, JournalParts,
                                   JournalAnswer, JournalEnd, JournalIncomplete>;

// What a rank's Sync records of a control packet to or from another rank's Supervisor: before it sends it,
// and when it has come. The detail is the other rank. Heartbeats are not recorded. Packets carry no number:
// those of one rank to another stay in order (runtime/transport.h), so in the two journals of a start the
// n-th that was received is the n-th that was sent.
inline constexpr std::string_view kControlSent = "control sent";
inline constexpr std::string_view kControlReceived = "control received";

}  // namespace tutti
