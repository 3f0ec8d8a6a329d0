#pragma once

#include <vector>

#include "collectives/group.h"
#include "collectives/mpi/endpoint.h"

namespace tutti {

// One collective, as this rank carries it out.
class Operation {
 public:
  explicit Operation(CollectiveJob job) : job_(std::move(job)) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;

  // Takes a bounded step, never blocks; false when there was nothing to do yet. Throws CollectiveError.
  virtual bool advance() = 0;

  // Ranks of this host that have not posted it yet.
  virtual std::vector<int> late() const { return {}; }

  bool finished() const { return finished_; }
  bool finite() const { return finite_; }  // as Work::finite
  const CollectiveJob& job() const { return job_; }
  const CollectiveHeader& header() const { return job_.header; }

 protected:
  void finish() { finished_ = true; }
  void found(bool finite) { finite_ = finite_ && finite; }

 private:
  CollectiveJob job_;
  bool finished_ = false;
  bool finite_ = true;
};

// A collective that the ranks of a host run through their control slots.
class SlotOperation : public Operation {
 public:
  SlotOperation(MpiEndpoint& endpoint, CollectiveJob job);
  std::vector<int> late() const override;

 protected:
  // Whether every rank of this host has posted this collective, this one included; posts it as soon as the
  // slot is free, and compares the others' headers with its own as they come.
  bool everyone_posted();

  // Called just before posting: what `slot` must hold by then.
  virtual void prepare(ControlSlot& slot) = 0;

  // Says that this rank reads nothing more of its neighbours, and finishes.
  void leave();

  // The least of a count over the ranks of this host.
  uint64_t least(SharedCount ControlSlot::*count) const;

  MpiEndpoint& endpoint() const { return endpoint_; }
  ControlSlot& slot(int local) const { return endpoint_.slot(local, sequence_); }
  ControlSlot& own_slot() const { return endpoint_.own_slot(sequence_); }
  uint64_t sequence() const { return sequence_; }

  int64_t item_bytes() const { return item_bytes_; }
  int64_t whole_bytes() const { return whole_bytes_; }
  std::byte* whole() const { return whole_; }
  std::byte* part() const { return part_; }
  std::byte* source() const;  // of what this rank contributes

 private:
  bool slot_is_free() const;
  void post();
  void compare(int local) const;

  MpiEndpoint& endpoint_;
  uint64_t sequence_;
  bool posted_ = false;
  std::vector<bool> agreed_;  // the ranks of this host whose headers match
  int agreed_count_ = 0;
  int64_t item_bytes_ = 1;
  int64_t whole_bytes_ = 0;
  std::byte* whole_ = nullptr;
  std::byte* part_ = nullptr;
};

// A small collective among ranks of one host: each puts its data into its slot, and every rank makes its
// result from all slots by itself, so that there is one wait instead of two.
class InlineOperation final : public SlotOperation {
 public:
  using SlotOperation::SlotOperation;
  bool advance() override;

 private:
  void prepare(ControlSlot& slot) override;
  void take_result();
  void sum(int64_t first, int64_t count, std::byte* out);
  void gather();
};

}  // namespace tutti
