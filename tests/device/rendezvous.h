#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace tutti::test_device {

// A call of a communicator.
struct Call {
  enum Kind : int8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };
  Kind kind = kAllReduce;
  int8_t dtype = 0;  // c10::ScalarType
  int32_t root = 0;
  int64_t count = 0;   // elements of a part, or of the whole
  uint64_t place = 0;  // among the calls of the rank, over all communicators

  bool matches(const Call& other) const;
  std::string text() const;  // "all_gather of 128 Float"
};

// The memory that the ranks of a communicator share, in one process or several: a file without a name.
class Rendezvous {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kKeptCalls = 64;

  // Makes the file. It lasts until rank 0 and all others have left.
  static CommunicatorId make();

  // Maps the file, and joins as `rank`, which is `world_rank` among all.
  Rendezvous(const CommunicatorId& id, int rank, int size, int world_rank);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;

  struct Rank {
    std::atomic<int64_t> process{0};  // once it has joined
    std::atomic<int> world_rank{0};
    std::atomic<uint64_t> launched{0};  // calls
    std::atomic<uint64_t> sent{0};      // calls with their input in the outbox
    std::atomic<uint64_t> wanted{0};    // calls for whose result somebody waits
    std::array<Call, kKeptCalls> calls;

    const Call& call(uint64_t number) const { return calls[number % kKeptCalls]; }
  };

  int rank() const { return rank_; }
  int size() const { return size_; }
  Rank& own() const { return of(rank_); }
  Rank& of(int rank) const;
  bool all_joined() const;
  // True if all ranks have sent their input of a call.
  bool all_sent(uint64_t number) const;
  // The most calls that another rank waits for.
  uint64_t wanted_by_others() const;

  // Memory for the input of a call. The next call but one uses the same.
  std::byte* outbox(int rank, uint64_t number, std::size_t bytes) const;

 private:
  int rank_, size_;
  int file_ = -1;  // of rank 0
  std::byte* memory_;
};

}  // namespace tutti::test_device
