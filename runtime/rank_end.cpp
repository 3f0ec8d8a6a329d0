#include "runtime/rank_end.h"

namespace tutti {

int exit_code(EndKind kind) {
  switch (kind) {
    case EndKind::kDone:
    case EndKind::kStopped:
      return 0;
    case EndKind::kRefused:
    case EndKind::kUserError:
      return 2;
    case EndKind::kNoLastCheckpoint:
      return 3;
    default:
      return 1;
  }
}

}  // namespace tutti
