#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectives/header_log.h"
#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"

namespace tutti {

// Detects different collectives posted by ranks without shared memory. A rank that waits long for a
// collective sends its last headers to its neighbours: the ranks at distance 1, 2, 4, ..., so that a slow
// rank of a large group does not cause a flood. The rank that finds a difference sends an alarm, which is
// forwarded.
class HeaderExchange {
 public:
  // `ranks`: the global numbers of the group's ranks. Collective.
  HeaderExchange(const MpiComm& comm, std::vector<int> ranks);

  // Sends the last posted headers to the neighbours.
  void send_headers(const HeaderLog& log);

  // Receives headers and compares all received ones with `log`. Throws CollectiveError.
  void check_received(const HeaderLog& log);

  // Sends `text`, the reason to stop, to the neighbours.
  void send_alarm(const std::string& text);

 private:
  static constexpr int kHeaders = 16;

  std::vector<int> neighbours() const;
  void send(const std::string& packet);
  void handle(const std::string& packet, int from);
  void compare(int from, const std::vector<CollectiveHeader>& theirs, const HeaderLog& log) const;

  MpiComm comm_;
  std::vector<int> ranks_;
  int rank_ = 0;
  bool alarm_sent_ = false;
  std::map<int, std::vector<CollectiveHeader>> headers_;  // last received, by rank
  Outgoing outgoing_;
};

}  // namespace tutti
