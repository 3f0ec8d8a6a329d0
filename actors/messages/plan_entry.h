#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/mesh.h"
#include "runtime/trace_event.h"
#include "tensors/digests.h"

namespace tutti {

// A collective of every pass. Compute and Sync share its tensors: Compute does not use them from RunEntry
// until the entry is done.
struct PlanEntry {
  CollectiveKind kind = CollectiveKind::kAllReduce;  // kAllReduce, kReduceScatter or kAllGather
  GroupRole group = GroupRole::kWorld;
  at::Tensor whole;  // whole, part and cut as in CollectiveJob; no cut: equal parts. See RunEntry::whole
  at::Tensor part;
  CutPtr cut;
  int after = -1;       // index of an earlier entry: this one begins when that is done, as they share memory
  bool if_any = false;  // skipped if the result of `after`, known to all ranks of the group, is zero
  std::string label;    // in errors and digests: "bucket 3"

  // Trace events, with `number`, that Sync records when the entry begins and when it is done.
  std::optional<TraceKind> begins, ends;
  int64_t number = 0;
  // Names the bytes of the result (kReduceScatter: of `part`). A digest is recorded of the bytes that this
  // rank sums. Empty: no digest.
  std::vector<DigestPart> parts;
};

}  // namespace tutti
