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

// The control network of a world of one: what it sends reaches itself.
class LoneTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void send(int, std::string bytes) override { packets_.push_back({0, std::move(bytes)}); }
  std::optional<Packet> poll() override {
    if (packets_.empty()) return std::nullopt;
    Packet packet = std::move(packets_.front());
    packets_.pop_front();
    return packet;
  }

 private:
  std::deque<Packet> packets_;
};

}  // namespace tutti
