#pragma once

#include <map>
#include <optional>
#include <string>

#include "actors/messages/messages.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/log.h"

namespace tutti {

// Finds ranks that are silent or hang, by their heartbeats. Rank 0 watches all ranks, other ranks watch rank
// 0.
class FailureDetector {
 public:
  struct Failure {
    std::optional<int> rank;  // none: every rank waits, so none is to blame
    RankEnd end;
  };

  // `log` must outlive the detector.
  FailureDetector(Nanoseconds hang_timeout, Log& log);

  // Watches the ranks of this world. Silence counts from `now` on.
  void start(TimePoint now, int rank, int world);
  void add(const std::map<int, Heartbeats::Peer>& heartbeats);  // the newest ones, by rank

  // Returns a rank that has been silent for hang_timeout, or has recorded no event for that long without
  // waiting for other ranks; or a collective in which ranks have waited for that long while all other ranks
  // wait too or are done. Work without a
  // time limit (Heartbeat::unhurried) only causes a warning.
  std::optional<Failure> check(TimePoint now);
  // Returns a rank that has missed three heartbeats. mpirun sends SIGTERM to the survivors of a lost rank:
  // then a request to stop is a failure.
  std::optional<Failure> check_stop_request(TimePoint now);

 private:
  Failure failure(TimePoint now, EndKind kind, int rank, const std::string& why) const;
  std::optional<Failure> check_collective(TimePoint now);
  void excuse_own_absence(TimePoint now);
  void warn_slow(TimePoint now, int rank);

  int rank_ = 0, world_ = 0;
  Nanoseconds hang_timeout_;
  Log& log_;
  std::map<int, Heartbeats::Peer> peers_;  // on rank 0 also of rank 0, after its first heartbeat
  std::map<int, TimePoint> next_warning_;
  TimePoint last_check_;
  std::string all_wait_;  // the last event of every rank, while each waits for others or is done; else ""
  TimePoint all_wait_since_;
};

}  // namespace tutti
