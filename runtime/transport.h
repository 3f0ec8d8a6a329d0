#pragma once

#include <deque>
#include <optional>
#include <string>

namespace tutti {

// Sends small control messages between ranks: heartbeats, parts of checkpoints, ends. The order between two
// ranks is kept. Called by the rank's Sync only; polling never blocks.
class Transport {
 public:
  struct Packet {
    int from = 0;
    std::string bytes;
  };

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void send(int to, std::string bytes) = 0;  // `to` may be this rank
  virtual std::optional<Packet> poll() = 0;
};

}  // namespace tutti
