#pragma once

#include <memory>
#include <vector>

#include "runtime/transport.h"

namespace tutti {

// The control network between ranks of one process. Thread-safe; packets arrive at once.
class LocalNetwork {
 public:
  explicit LocalNetwork(int size);

  // One rank's end, which keeps what it needs of the network.
  std::unique_ptr<Transport> transport(int rank) const;

 private:
  struct Inbox;
  class End;
  std::shared_ptr<std::vector<Inbox>> inboxes_;
};

}  // namespace tutti
