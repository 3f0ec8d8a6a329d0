#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/actor/message.h"
#include "runtime/error.h"

namespace tutti {

struct ControlBlock;

// The reply to one request. The actor that replies writes `answer` once, then `state`.
struct ReplySlot {
  enum State : uint8_t { kWaiting, kAnswered, kBroken };  // broken: the asked actor stopped without a reply

  explicit ReplySlot(ControlBlock& asker) : asker(asker) {}

  ControlBlock& asker;
  Message answer;
  std::atomic<State> state{kWaiting};
  uint32_t asked = UINT32_MAX;  // index of the asked actor, for reports
  const char* question = "";    // name of the request, for reports
};

template <class Reply>
Pending<Reply> Context::request(ActorId to, Message message) {
  return Pending<Reply>(*this, post(to, std::move(message)));
}

template <class Reply>
Reply Context::ask(ActorId to, Message message) {
  return request<Reply>(to, std::move(message)).wait();
}

template <class Reply>
bool Pending<Reply>::ready() const {
  return slot_ && slot_->state.load(std::memory_order_acquire) != ReplySlot::kWaiting;
}

template <class Reply>
bool Pending<Reply>::ready_by(TimePoint until) const {
  return slot_ && context_->wait_until(slot_, until);
}

template <class Reply>
Reply Pending<Reply>::wait() {
  TUTTI_ASSERT(slot_, "waited twice for one reply");
  const ReplySlotPtr slot = std::move(slot_);
  Message answer = context_->wait(slot);
  Reply* reply = answer.get_if<Reply>();
  TUTTI_ASSERT(reply,
               std::string(slot->question) + " was answered with " + answer.name() + ", not " + Reply::kName);
  return std::move(*reply);
}

}  // namespace tutti
