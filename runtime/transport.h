#pragma once

#include <deque>
#include <optional>
#include <string>

namespace tutti {

// Small control messages between ranks: heartbeats, verdict notices, publishing. Delivery between two ranks
// keeps order. Called by the rank's Sync only; polling never blocks.
class Transport {
 public:
  struct Packet {
    int from = 0;
    std::string bytes;
  };

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void send(int to, std::string bytes) = 0;  // to itself too
  virtual std::optional<Packet> poll() = 0;
};

}  // namespace tutti
