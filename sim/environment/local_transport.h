#pragma once

#include <memory>
#include <vector>

#include "runtime/transport.h"

namespace tutti {

// The control network between ranks of one process. Thread-safe; packets arrive at once.
class LocalNetwork {
 public:
  explicit LocalNetwork(int size);
  ~LocalNetwork();

  // One rank's end; the network must outlive it.
  std::unique_ptr<Transport> transport(int rank);

 private:
  struct Inbox;
  class End;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

}  // namespace tutti
