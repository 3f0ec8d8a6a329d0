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

// A collective that every pass has. Compute and Sync share its tensors: Compute leaves them alone from
// RunEntry until the entry is done.
struct PlanEntry {
  CollectiveKind kind = CollectiveKind::kAllReduce;  // kAllReduce, kReduceScatter or kAllGather
  GroupRole group = GroupRole::kWorld;
  at::Tensor whole;  // whole, part and cut as in CollectiveJob; no cut: equal parts. See RunEntry::whole
  at::Tensor part;
  CutPtr cut;
  int after = -1;       // index of an entry before, on whose result this one works and which it waits for
  bool if_any = false;  // left out if the result of `after`, which all ranks of the group have, is zero
  std::string label;    // in errors and digests: "bucket 3"

  // What Sync records, with `number`, where the entry begins and when it is done.
  std::optional<TraceKind> begins, ends;
  int64_t number = 0;
  // Names the bytes of the result (kReduceScatter: of `part`); of those that are this rank's to sum a digest
  // is recorded. Empty: none.
  std::vector<DigestPart> parts;
};

}  // namespace tutti
