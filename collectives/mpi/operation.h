#pragma once

#include <vector>

#include "collectives/group.h"
#include "collectives/mpi/endpoint.h"

namespace tutti {

// One rank's part of a collective.
class Operation {
 public:
  explicit Operation(CollectiveJob job);
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;

  // Does a bounded amount of work, never blocks. False if there was nothing to do. Throws CollectiveError.
  virtual bool advance() = 0;

  // Ranks of the world, on this host, that have not posted the collective yet.
  virtual std::vector<int> late() const { return {}; }

  bool finished() const { return finished_; }
  bool finite() const { return finite_; }  // as Work::finite
  const CollectiveJob& job() const { return job_; }
  const CollectiveHeader& header() const { return job_.header; }

 protected:
  void finish() { finished_ = true; }
  void note_finite(bool finite) { finite_ = finite_ && finite; }

  const Cut& cut() const { return *job_.cut; }  // of reduce_scatter and all_gather
  int64_t item_bytes() const { return item_bytes_; }
  int64_t whole_bytes() const { return job_.whole.defined() ? static_cast<int64_t>(job_.whole.nbytes()) : 0; }
  std::byte* whole() const { return whole_; }  // null: this rank has none
  std::byte* part() const { return part_; }    // likewise; in place: the whole
  bool in_place() const { return job_.in_place(); }

  // Where bytes [first, first + bytes) of a rank's part lie in the whole. Without a cut: the whole.
  std::vector<CutRun> runs(int rank, int64_t first, int64_t bytes) const;
  // Copies the bytes from the whole to dense memory, or back.
  void pack(int rank, int64_t first, int64_t bytes, std::byte* to) const;
  void unpack(int rank, int64_t first, int64_t bytes, const std::byte* from) const;
  // Where the bytes of this rank lie in part().
  std::vector<CutRun> own_runs(int rank, int64_t first, int64_t bytes) const;

 private:
  CollectiveJob job_;
  int64_t item_bytes_ = 1;
  std::byte* whole_ = nullptr;
  std::byte* part_ = nullptr;
  bool finished_ = false;
  bool finite_ = true;
};

// A collective that the ranks of a host run through their control slots.
class SlotOperation : public Operation {
 public:
  SlotOperation(MpiEndpoint& endpoint, CollectiveJob job);
  std::vector<int> late() const override;

 protected:
  // Posts this rank's header as soon as the slot is free, and compares the headers of all ranks. True if
  // every rank of this host has posted the collective.
  bool everyone_posted();

  // Fills the slot; called right before posting.
  virtual void prepare(ControlSlot& slot) = 0;

  // Marks that this rank no longer reads its neighbours' memory, and finishes.
  void leave();

  // The minimum of a count over the ranks of this host.
  uint64_t least(SharedCount ControlSlot::*count) const;

  MpiEndpoint& endpoint() const { return endpoint_; }
  ControlSlot& slot(int local) const { return endpoint_.slot(local, sequence_); }
  ControlSlot& own_slot() const { return endpoint_.own_slot(sequence_); }
  uint64_t sequence() const { return sequence_; }

  bool gathers() const { return header().kind == CollectiveKind::kAllGather; }
  const at::Tensor& source() const { return gathers() ? job().part : job().whole; }  // this rank's input

 private:
  bool slot_is_free() const;
  void post();
  void compare(int local) const;

  MpiEndpoint& endpoint_;
  uint64_t sequence_;
  bool posted_ = false;
  std::vector<bool> agreed_;  // the ranks of this host whose headers match
  int agreed_count_ = 0;
};

// A small collective between ranks of one host. Each rank puts its data into its slot and computes its result
// from all slots, so that there is one wait instead of two.
class InlineOperation final : public SlotOperation {
 public:
  using SlotOperation::SlotOperation;
  bool advance() override;

 private:
  void prepare(ControlSlot& slot) override;
  void compute_result();
  void scatter(int rank);
  void sum(int64_t first, int64_t bytes, std::byte* out);
};

}  // namespace tutti
