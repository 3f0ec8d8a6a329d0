#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/clock.h"

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

// A trace event; the names are those of runtime/trace_event.h, or of another version of it.
struct JournalEvent {
  TimePoint time;
  std::string_view actor;
  std::string_view kind;
  int64_t step = -1;
  int64_t detail = 0;
};

// A hash of something that is the same in every run of the job. The parts, one for each name that the last
// JournalParts of the same key gave, tell where two differ.
struct JournalDigest {
  std::string_view key;
  int64_t step = -1;
  uint64_t value = 0;
  std::vector<uint16_t> parts;
};

struct JournalParts {
  std::string_view key;
  std::vector<std::string> names;
};

// A recorded input: a clock's value, a disk's error.
struct JournalInput {
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
                                   JournalInput, JournalEnd, JournalIncomplete>;

}  // namespace tutti
