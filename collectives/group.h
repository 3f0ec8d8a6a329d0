#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/cut.h"
#include "runtime/error.h"
#include "tensors/device.h"

namespace tutti {

enum class CollectiveKind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };
const char* name(CollectiveKind kind);

// Describes a posted collective. All ranks of a group must post the same (kind, bytes, cut) under the same
// sequence number. `label` names the collective in errors ("bucket 3", "verdict") and is not compared.
struct CollectiveHeader {
  uint64_t sequence = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  uint64_t bytes = 0;  // of the whole; of all parts, if it is cut
  uint64_t cut = 0;    // Cut::hash; 0 if the kind has no parts
  char label[40] = {};

  std::string text() const;  // "#812 all_reduce of 4096 bytes (bucket 3)"
};

// Ranks posted different collectives, or a rank is lost. The message names the ranks and their collectives.
class CollectiveError : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// A collective cannot complete because the process of a rank has ended.
class LostRankError : public CollectiveError {
 public:
  LostRankError(int rank, const CollectiveHeader& waited);
  int rank() const { return rank_; }

 private:
  int rank_;
};

// A collective in progress. Until `done()` its tensors must keep their memory, also on a rank that only
// serves its part; nobody may write the tensors, or read the collective's outputs.
class Work {
 public:
  virtual ~Work() = default;
  // Makes progress and returns true if the collective has finished, or, on a device, if only the device's
  // work is left: `results` says when that work is over. Never blocks. Throws CollectiveError.
  virtual bool done() = 0;
  // Valid once done.
  virtual StreamOrder results() const { return {}; }
  virtual const CollectiveHeader& header() const = 0;
  // Valid once done. False if the sum of an all_reduce (the same on all ranks), or this rank's part of a
  // reduce_scatter, has an infinity or NaN. True for other collectives, without a part, and if a device sums.
  virtual bool finite() const = 0;
};
using WorkPtr = std::unique_ptr<Work>;

// Memory of a group that the ranks are taking. All of them have it once done. `done` also throws
// OperatingError, on every rank, if a rank has no memory.
class Allocation : public Work {
 public:
  // Valid once done. Flat uint8, zeroed, 64-byte aligned. Valid while tensor and group live.
  virtual at::Tensor memory() const = 0;
  bool finite() const override { return true; }
};
using AllocationPtr = std::unique_ptr<Allocation>;
// Of a group that needs no other rank for its memory.
AllocationPtr allocated(at::Tensor memory);

// A set of ranks that run collectives together. All tensors are flat (1-D, contiguous). Sums are computed in
// the tensor's dtype: float32, float64, bfloat16, float16, int32 or int64. Every rank posts the same
// collectives in the same order; collectives may overlap. Not thread-safe: only Sync's thread uses a group.
// Polling one group need not advance another: poll every group that has work in progress.
//
// The ordered sum of ranks [a, b): for one rank its value; else split at a + the largest power of two below b
// - a, and add the sums of the halves. So the sum of an aligned power-of-two block is the same everywhere.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // A rank of this group as a rank of the world, for errors.
  virtual int world_rank(int rank) const = 0;

  // False while the ranks meet and connect; nothing may be posted then. Makes progress; never blocks. Throws
  // CollectiveError. A rank counts as there from its first call on.
  virtual bool ready() { return true; }

  // Takes memory that this group reads without copying (shared between ranks of one host). `bytes` may differ
  // between ranks. Collective. Nothing else may be posted until the allocation is done.
  virtual AllocationPtr allocate(int64_t bytes) = 0;

  virtual WorkPtr all_reduce(at::Tensor inout, const std::string& label) = 0;

  // out = this rank's part of the sum of the inputs, which are wholes (collectives/cut.h). An ordered sum has
  // the bits of an all_reduce. Without `out` (undefined) this rank's part of the sum is lost. `out` may be
  // `input` itself: then the part lies at its places in the whole.
  virtual WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) = 0;
  // out = the whole, of which rank r's input is part r. Without `out` (undefined) this rank serves its part,
  // and receives no data. Input and out may share memory if each element of the part lies at its place in the
  // whole; if the input is `out` itself, all do.
  virtual WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) = 0;
  // The same with an even cut: the whole is as large as size() parts.
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, const std::string& label);
  WorkPtr all_gather(at::Tensor input, at::Tensor out, const std::string& label);

  virtual WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) = 0;
  virtual WorkPtr barrier(const std::string& label) = 0;

  // Grows whenever polling advances a collective, finished or not.
  virtual int64_t moves() const { return 0; }

  // Ranks of the world that have not come before the group is ready; then those on this host that have not
  // posted the oldest collective in progress. For error reports.
  virtual std::vector<int> late() const { return {}; }

  // The last posted collectives, newest last, for error reports.
  virtual std::vector<CollectiveHeader> posted(int count) const = 0;

  // A rank of the world on this host whose process is known to have ended.
  virtual std::optional<int> lost_rank() const { return std::nullopt; }

  // -- Groups whose collectives a device runs (collectives/device/group.h).

  // True if collectives run on the caller's current stream, in the order of posting. Over all such groups of
  // a rank there must be one order of posting, the same on all ranks.
  virtual bool runs_on_stream() const { return false; }
  // Takes the group's own memory for collectives with this cut and elements of `item` bytes.
  virtual void reserve(const Cut& /*cut*/, std::size_t /*item*/) {}
  // Throws CollectiveError if the device's work of a collective that is done cannot end. Never blocks.
  virtual void check() {}
  // After an error: ends collectives that not all ranks have posted. The group cannot be used afterwards.
  virtual void abandon() {}
};

// The arguments of a collective. `whole` is the tensor with all data (the input of reduce_scatter, the output
// of all_gather), `part` the tensor with this rank's part, or the whole itself; other kinds have no part and
// no cut.
struct CollectiveJob {
  CollectiveHeader header = {};
  at::Tensor whole = {};
  at::Tensor part = {};
  CutPtr cut = {};
  int root = 0;

  uint64_t bytes() const;                                                  // CollectiveHeader::bytes
  bool in_place() const { return part.defined() && part.is_same(whole); }  // the part lies within the whole
};

// A backend: makes the groups of one rank.
class GroupFactory {
 public:
  virtual ~GroupFactory() = default;
  virtual int rank() const = 0;  // among all ranks
  virtual int size() const = 0;

  // Makes a group of `ranks`: ascending, with this rank. Never blocks: see Group::ready. All members must
  // make the same groups, and poll them until they are ready, in the same order.
  virtual std::unique_ptr<Group> make(const std::vector<int>& ranks) = 0;
};

// For callers without other work: they block.
void wait_until_ready(Group& group);
at::Tensor wait_for_memory(Group& group, int64_t bytes);

// Assertions on the tensors of a collective.
void check_flat(const at::Tensor& tensor);      // 1-D, contiguous
void check_summable(const at::Tensor& tensor);  // flat, can_sum
// Part and whole are flat, of one dtype, and as large as the cut says. `out` may be undefined.
void check_reduce_scatter(const Group& group, const at::Tensor& input, const at::Tensor& out, const Cut& cut);
void check_all_gather(const Group& group, const at::Tensor& input, const at::Tensor& out, const Cut& cut);

}  // namespace tutti
