#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// How a run ends on a rank.
enum class EndKind : uint8_t {
  kDone,                     // all is trained
  kStopped,                  // on request, before all was trained
  kNoLastCheckpoint,         // the last checkpoint could not be written
  kRefused,                  // all ranks agree that they cannot start
  kUserError,                // of this rank alone
  kOperatingError,           // none of the others below
  kOutOfMemoryInStep,        // even in the smallest parts; so in an evaluation
  kOutOfMemoryInEvaluation,  //
  kOutOfMemoryElsewhere,     // in what has no parts: a listener, a prediction
  kHang,                     // a rank, or all of them, stood still for hang_timeout
  kSilence,                  // a rank was silent while another one was asked to stop
  kLostRank,                 // the process of another rank ended
  kKilled,
  kInterrupted,   // by the user, twice
  kStuck,         // the scheduler found that no actor can continue
  kProgramError,  // an exception of any other type
};

struct RankEnd {
  EndKind kind = EndKind::kDone;
  std::string reason = {};     // of an end by an error: the whole message
  std::string abandoned = {};  // logs that the rank did not wait for: "metrics.jsonl, logger CsvLogger"

  bool well() const { return kind == EndKind::kDone || kind == EndKind::kStopped; }
};

// Of the rank's process.
inline int exit_code(EndKind kind) {
  if (kind == EndKind::kDone || kind == EndKind::kStopped) return 0;
  if (kind == EndKind::kRefused || kind == EndKind::kUserError) return 2;
  return kind == EndKind::kNoLastCheckpoint ? 3 : 1;
}

}  // namespace tutti
