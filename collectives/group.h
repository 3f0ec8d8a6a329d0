#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace tutti {

enum class CollectiveKind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };
const char* name(CollectiveKind kind);

// What a rank posted: ranks of a group must post the same (kind, bytes) under the same sequence number.
// `label` says which entry of the plan it is ("bucket 3", "verdict"); it is compared by nobody and named in
// errors.
struct CollectiveHeader {
  uint64_t sequence = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  uint64_t bytes = 0;
  char label[40] = {};

  std::string text() const;  // "#812 all_reduce of 4096 bytes (bucket 3)"
};

// Ranks posted different collectives, or one of them is lost. Names the ranks and what each posted.
class CollectiveError : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// A collective cannot end, for a rank's process did.
class LostRankError : public CollectiveError {
 public:
  LostRankError(int rank, const CollectiveHeader& waited);
  int rank() const { return rank_; }

 private:
  int rank_;
};

// A collective under way. The tensors it was given must stay alive and untouched until `done()`.
class Work {
 public:
  virtual ~Work() = default;
  // Moves it on and says whether it has finished; never blocks. Throws CollectiveError.
  virtual bool done() = 0;
  virtual const CollectiveHeader& header() const = 0;
  // Once done: whether an all_reduce's sum, or this rank's chunk of a reduce_scatter's, holds no infinity and
  // no NaN. Of an all_reduce all ranks say the same. Of other collectives it says true.
  virtual bool finite() const = 0;
};
using WorkPtr = std::unique_ptr<Work>;

// Ranks that run collectives together. All tensors are flat (1-D, contiguous); sums are float32, float64,
// bfloat16, float16, int32 or int64 in their own dtype. Every rank posts the same collectives in the same
// order; they may overlap. One thread (Sync's) uses a group.
//
// The ordered sum of ranks [a, b): one rank is itself; else split at a + the largest power of two below b - a
// and add the two halves' sums. So the sum of an aligned power-of-two block of ranks is the same wherever it
// is computed.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Memory from which this group reduces without copying (a shared window between ranks of one host), zeroed,
  // 64-byte aligned; as a flat uint8 tensor, alive as long as the tensor and the group. A collective call:
  // every rank, same order. Blocks.
  virtual at::Tensor allocate(int64_t bytes) = 0;

  virtual WorkPtr all_reduce(at::Tensor inout, const std::string& label) = 0;
  // out = this rank's chunk of the sum: input.numel() = size() * out.numel().
  virtual WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, const std::string& label) = 0;
  // out.numel() = size() * input.numel(); rank r's input is chunk r.
  virtual WorkPtr all_gather(at::Tensor input, at::Tensor out, const std::string& label) = 0;
  virtual WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) = 0;
  virtual WorkPtr barrier(const std::string& label) = 0;

  // Ranks that are known not to have posted the oldest collective under way, as far as they can be seen from
  // here (those of other hosts cannot), for error reports.
  virtual std::vector<int> late() const { return {}; }

  // The group's last posted collectives, newest last, for error reports.
  virtual std::vector<CollectiveHeader> posted(int count) const = 0;
};

// What a rank asked its group for. `whole` is the tensor that holds all of the data (the input of
// reduce_scatter, the output of all_gather), `part` the one that holds this rank's chunk of it; the other
// kinds have no part.
struct CollectiveJob {
  CollectiveHeader header;
  at::Tensor whole;
  at::Tensor part;
  int root = 0;
};

// A backend: makes the groups of one rank, of whichever ranks a mesh puts together.
class GroupFactory {
 public:
  virtual ~GroupFactory() = default;
  virtual int rank() const = 0;  // of the world
  virtual int size() const = 0;

  // The group of `ranks` (ascending, this one among them). Every member asks for the same groups in the same
  // order; blocks until all have. A group of one needs nobody.
  virtual std::unique_ptr<Group> make(const std::vector<int>& ranks) = 0;
};

// What every backend asserts of the tensors it is given.
void check_flat(const at::Tensor& tensor);      // 1-D, contiguous
void check_summable(const at::Tensor& tensor);  // flat, of a dtype that has sums
void check_parts(const at::Tensor& part, const at::Tensor& whole,
                 int parts);  // flat, one dtype, whole = parts * part

}  // namespace tutti
