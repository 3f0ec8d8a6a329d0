#pragma once

#include <array>

#include "collectives/mpi/operation.h"
#include "collectives/mpi/requests.h"

namespace tutti {

// A collective that is cut into pieces, each of one chunk a rank, which flow through five stages:
//   fill     this rank's data goes into its scratch, unless it lies in a shared window already ("direct")
//   send     what other hosts need of this host's data leaves
//   settle   what this rank is to make of the piece is made, as far as its own chunk goes
//   collect  what other hosts owe this one has come; the piece is then settled here
//   drain    the result is taken out of the neighbours' memory
// Every stage handles pieces in order, at most one a step, so that a step is short; between hosts and in
// scratch at most MpiEndpoint::kBuffers pieces are under way.
class PiecedOperation : public SlotOperation {
 public:
  PiecedOperation(MpiEndpoint& endpoint, CollectiveJob job);
  bool advance() override;

 protected:
  // A rank's chunk of a piece, in bytes.
  struct Chunk {
    int64_t at = 0;  // within `whole`
    int64_t bytes = 0;
    int64_t scratch = 0;  // within the piece's scratch
  };
  virtual Chunk chunk(int64_t piece, int rank) const = 0;

  virtual void fill(int64_t piece) = 0;
  virtual void send(int64_t piece) = 0;
  virtual bool settle(int64_t piece) = 0;   // false: not yet
  virtual bool collect(int64_t piece) = 0;  // false: not yet
  virtual void drain(int64_t piece) = 0;
  virtual bool drains() const = 0;
  virtual bool can_be_direct() const = 0;

  void set_pieces(int64_t pieces) { pieces_ = pieces; }
  bool direct() const { return direct_; }
  bool across_hosts() const { return endpoint().layout().hosts() > 1; }

  std::byte* scratch(int local, int64_t piece) const;
  // A neighbour's memory of the same window as this rank's `source`.
  std::byte* neighbour_source(int local) const;

  // Per piece under way: messages to others, which must be gone before its buffers serve again, and from
  // others.
  struct Mail {
    Requests sent;
    Requests sums;     // other hosts' part of this rank's chunk
    Requests results;  // what comes back, or is spread
    std::vector<std::byte> outgoing;
    std::vector<std::byte> incoming;
  };
  Mail& mail(int64_t piece) { return mail_[piece % MpiEndpoint::kBuffers]; }
  enum class Leg { kSum, kResult };
  int tag(Leg leg, int64_t piece) const;

 private:
  void prepare(ControlSlot& slot) override;
  bool decide();
  bool is_small() const { return header().bytes <= static_cast<uint64_t>(ControlSlot::kInlineBytes); }
  bool buffer_is_free(int64_t piece);
  bool step_fill();
  bool step_send();
  bool step_settle();
  bool step_collect();
  bool step_drain();
  bool complete();

  int64_t pieces_ = 0;
  bool decided_ = false;
  bool direct_ = false;
  std::shared_ptr<SharedWindow> window_;
  int64_t filled_ = 0;
  int64_t sent_ = 0;
  int64_t settled_ = 0;
  int64_t collected_ = 0;
  int64_t drained_ = 0;
  std::array<Mail, MpiEndpoint::kBuffers> mail_;
};

}  // namespace tutti
