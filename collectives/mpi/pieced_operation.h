#pragma once

#include <array>

#include "collectives/mpi/operation.h"
#include "collectives/mpi/requests.h"

namespace tutti {

// A collective in pieces. A piece has a chunk for each rank, and passes five stages:
//   fill     copies this rank's data into its scratch, unless the data is in a shared window ("direct")
//   send     sends the data that other hosts need
//   settle   computes this rank's chunk
//   collect  waits for data from other hosts
//   drain    copies the result from the neighbours' memory
// Every stage handles pieces in order, at most one piece a step, so that a step is short. At most
// MpiEndpoint::kBuffers pieces are in transit between hosts and in scratch.
class PiecedOperation : public SlotOperation {
 public:
  PiecedOperation(MpiEndpoint& endpoint, CollectiveJob job);
  bool advance() override;

 protected:
  // A rank's chunk of a piece, in bytes.
  struct Chunk {
    int64_t at = 0;  // within the rank's part; within `whole` if there is no cut
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
  // Sets pieces in which each rank's chunk is the next of its part.
  void set_pieces_of_parts();
  Chunk chunk_of_part(int64_t piece, int rank) const;
  bool direct() const { return direct_; }
  bool across_hosts() const { return endpoint().layout().hosts() > 1; }

  std::byte* scratch(int local, int64_t piece) const;
  // A neighbour's memory of the same window as this rank's `source`.
  std::byte* neighbour_source(int local) const;

  // Messages of a piece. Its buffers are reused only after `sent` is done.
  struct Messages {
    Requests sent;
    Requests sums;     // other hosts' parts of this rank's chunk
    Requests results;  // received results
    std::vector<std::byte> outgoing;
    std::vector<std::byte> incoming;
  };
  Messages& messages(int64_t piece) { return messages_[piece % MpiEndpoint::kBuffers]; }
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
  int64_t step_bytes_ = 1;  // bytes of the largest part in each piece
  bool decided_ = false;
  bool direct_ = false;
  std::shared_ptr<SharedWindow> window_;
  int64_t filled_ = 0;
  int64_t sent_ = 0;
  int64_t settled_ = 0;
  int64_t collected_ = 0;
  int64_t drained_ = 0;
  std::array<Messages, MpiEndpoint::kBuffers> messages_;
};

}  // namespace tutti
