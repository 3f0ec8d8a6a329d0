#pragma once

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/header_log.h"
#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"

namespace tutti {

// Finds out, by small messages, that ranks which share no memory have posted different collectives. A rank
// whose collective is late tells some others what it posted last; whoever posted something else under one of
// those numbers raises the alarm, which every rank passes on. A rank talks to those 1, 2, 4, ... places away,
// so that a slow rank of a large group does not cause a storm.
class HeaderExchange {
 public:
  // `ranks`: the world's names of the group's ranks. Collective.
  HeaderExchange(const MpiComm& comm, std::vector<int> ranks);

  // Tells the neighbours about the last collectives posted.
  void tell(const HeaderLog& log);

  // Compares what has come, since the last call or before it was posted here, with `log`. Throws
  // CollectiveError.
  void listen(const HeaderLog& log);

  // Passes `text`, the reason to stop, on to the neighbours.
  void alarm(const std::string& text);

 private:
  static constexpr int kHeaders = 16;

  std::vector<int> neighbours() const;
  void send(const std::string& packet);
  void take(const std::string& packet, int from);
  void compare(int from, const std::vector<CollectiveHeader>& theirs, const HeaderLog& log) const;

  MpiComm comm_;
  std::vector<int> ranks_;
  int rank_ = 0;
  bool alarmed_ = false;
  std::map<int, std::vector<CollectiveHeader>> heard_;  // the last that each rank told
  std::list<std::pair<std::string, Requests>> outgoing_;
};

}  // namespace tutti
