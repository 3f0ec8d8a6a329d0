#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "collectives/mesh.h"
#include "runtime/trace_event.h"
#include "tensors/digests.h"

namespace tutti {

// The place of a collective in the one order of a rank's collectives on a device (Group::runs_on_stream), the
// same on all ranks: a rank that waits for a collective has asked for all earlier collectives, or serves
// them. Gathers for the forward of a portion come before the order of its backward.
struct PassPlace {
  int64_t portion = -1;     // -1: before all
  int64_t in_backward = 0;  // 0: not in backward

  static PassPlace gather(int64_t portion, std::size_t unit, std::size_t units) {
    return {portion, 2 * static_cast<int64_t>(units - unit)};
  }
  // The sums of a unit's gradients come after the gather of the unit before, if any.
  static PassPlace sum(int64_t portion, std::size_t unit, std::size_t units) {
    return {portion, 2 * static_cast<int64_t>(units - unit) + 3};
  }
  static PassPlace last() { return {std::numeric_limits<int64_t>::max()}; }
  friend auto operator<=>(const PassPlace&, const PassPlace&) = default;
};

// A collective of every pass. Compute and Sync share its tensors, which Compute does not use from RunEntry
// until the entry is done.
struct PlanEntry {
  CollectiveKind kind = CollectiveKind::kAllReduce;  // kAllReduce, kReduceScatter or kAllGather
  GroupRole group = GroupRole::kWorld;
  at::Tensor whole;  // whole, part and cut as in CollectiveJob; no cut: equal parts. See RunEntry::whole
  at::Tensor part;
  CutPtr cut;
  PassPlace place = {};  // entries of one place keep the order of the plan
  int after = -1;        // index of the earlier entry with the same memory, which must be done first
  bool if_any = false;   // skipped if the result of `after`, known to all ranks of the group, is zero
  std::string label;     // in errors and digests: "bucket 3"

  // Trace events, with `number`, that Sync records at the entry's begin and end.
  std::optional<TraceKind> begins, ends;
  int64_t number = 0;
  // Names the bytes of the result (kReduceScatter: of `part`). A digest is recorded of the bytes that this
  // rank sums. Empty: no digest.
  std::vector<DigestPart> parts;
};

}  // namespace tutti
