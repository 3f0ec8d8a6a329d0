#pragma once

#include <deque>

#include "runtime/transport.h"

namespace tutti {

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
