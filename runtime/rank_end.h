#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// The end of a run on a rank.
enum class EndKind : uint8_t {
  kDone,                     // trained to the end
  kStopped,                  // on request, before the end
  kNoLastCheckpoint,         // the last checkpoint could not be written
  kRefused,                  // all ranks agree that they cannot start
  kUserError,                // on this rank alone
  kOperatingError,           // any but those listed below
  kOutOfMemoryInStep,        // even with the smallest microbatches
  kOutOfMemoryInEvaluation,  // likewise
  kOutOfMemoryElsewhere,     // in work that cannot be split: a listener, a prediction
  kHang,                     // one rank, or all, made no progress for hang_timeout
  kSilence,                  // a rank sent no heartbeats while another rank was asked to stop
  kLostRank,                 // the process of another rank ended
  kKilled,
  kInterrupted,   // by the user, twice
  kStuck,         // the scheduler found that no actor can continue
  kProgramError,  // an exception of any other type
  kSkipping,      // trained to the end, but the last steps were all skipped: nothing finite to train on
};

struct RankEnd {
  EndKind kind = EndKind::kDone;
  std::string reason = {};  // the error message; "" if no error ended the run

  // The training loop came to its end.
  bool well() const {
    return kind == EndKind::kDone || kind == EndKind::kStopped || kind == EndKind::kSkipping;
  }
};

// The exit code of the rank's process.
inline int exit_code(EndKind kind) {
  if (kind == EndKind::kDone || kind == EndKind::kStopped) return 0;
  if (kind == EndKind::kRefused || kind == EndKind::kUserError) return 2;
  if (kind == EndKind::kNoLastCheckpoint) return 3;
  return kind == EndKind::kSkipping ? 4 : 1;
}

}  // namespace tutti
