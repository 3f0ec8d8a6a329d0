#pragma once

#include <memory>
#include <vector>

#include "runtime/transport.h"

namespace tutti {

// The control network between ranks of one process. Thread-safe; packets arrive immediately.
class LocalNetwork {
 public:
  explicit LocalNetwork(int size);

  // One rank's endpoint; may outlive this object.
  std::unique_ptr<Transport> transport(int rank) const;

 private:
  struct Inbox;
  class Endpoint;
  std::shared_ptr<std::vector<Inbox>> inboxes_;
};

}  // namespace tutti
