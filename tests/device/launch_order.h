#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/rendezvous.h"

namespace tutti::test_device {

// The calls of communicators that ranks of this process make, each in one order over all communicators.
// Thread-safe.
class LaunchOrder {
 public:
  // The number of a new communicator of a rank, since the calls were taken.
  int add_communicator(int world_rank);
  // The place of the next call of a rank, which is recorded.
  uint64_t add(int world_rank, const std::string& text);
  std::map<int, std::vector<std::string>> take_calls();  // by rank

  // A call that a rank of this process and another rank both make. Returns "", or what is wrong: another
  // call, or another order than of calls that were compared before.
  std::string compare(const Rendezvous::Rank& own, const Call& mine, const Rendezvous::Rank& other,
                      const Call& theirs);

 private:
  static constexpr std::size_t kKept = 256;  // common calls of two ranks
  struct Pair {
    int own;
    int64_t process;
    int other;
    auto operator<=>(const Pair&) const = default;
  };
  struct Common {
    uint64_t theirs;
    std::string text;
  };

  std::mutex mutex_;
  std::map<int, uint64_t> next_;  // by rank
  std::map<int, int> communicators_;
  std::map<int, std::vector<std::string>> calls_;
  std::map<Pair, std::map<uint64_t, Common>> common_;  // by this rank's place
};

LaunchOrder& launch_order();

}  // namespace tutti::test_device
