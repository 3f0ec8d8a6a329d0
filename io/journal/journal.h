#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/clock.h"

// The records of a rank's journal; docs/journal.md describes the bytes. Views are names, owned by the
// JournalCursor that returned the record.

namespace tutti {

// The inputs for starting the run (RecordedJob), as JSON; the first record of every journal.
struct JournalHead {
  std::string json;
};

// An actor took a message; `from` is "" for a message from outside the rank's actors.
struct JournalDelivery {
  std::string_view to;
  std::string_view from;
  std::string_view message;
  TimePoint time;  // rounded down to 100 ns, like all times of a journal
};

// A trace event, with the names of runtime/trace_event.h in the version that wrote the journal.
struct JournalEvent {
  TimePoint time;
  std::string_view actor;
  std::string_view kind;
  int64_t step = -1;
  int64_t detail = 0;
};

// A hash that is equal in every run of the job. The parts, a part for each name in the last JournalParts of
// the same key, show where two digests differ.
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

// The end of the run on this rank; absent if the process was killed.
struct JournalEnd {
  std::string text;
};

// Why no record follows although the run continued.
struct JournalIncomplete {
  std::string why;
};

using JournalRecord = std::variant<JournalHead, JournalDelivery, JournalEvent, JournalDigest, JournalParts,
                                   JournalInput, JournalEnd, JournalIncomplete>;

}  // namespace tutti
