#include "runtime/actor/actor.h"

#include <utility>

#include "runtime/actor/control_block.h"
#include "runtime/actor/scheduler.h"

namespace tutti {

TimePoint Context::now() const { return scheduler_.now(); }

void Context::send(ActorId to, Message message) {
  scheduler_.send(scheduler_.block(self_), to, Envelope{self_, std::move(message), nullptr});
}

ReplySlotPtr Context::post(ActorId to, Message message) {
  ControlBlock& self = scheduler_.block(self_);
  auto slot = std::make_shared<ReplySlot>(self);
  slot->asked = to.index;
  slot->question = message.name();
  scheduler_.send(self, to, Envelope{self_, std::move(message), slot});
  return slot;
}

Message Context::wait(const ReplySlotPtr& slot) { return scheduler_.await(scheduler_.block(self_), *slot); }

bool Context::wait_until(const ReplySlotPtr& slot, TimePoint until) {
  return scheduler_.await_until(scheduler_.block(self_), *slot, until);
}

void Context::reply(Envelope& envelope, Message message) {
  const ReplySlotPtr slot = std::move(envelope.slot);
  TUTTI_ASSERT(
      slot, std::string(message.name()) + " replies to a message that expects no reply or already has one");
  scheduler_.answer(*slot, std::move(message), ReplySlot::kAnswered);
}

void Context::sleep(Nanoseconds duration) { scheduler_.sleep(scheduler_.block(self_), now() + duration); }

Envelope Context::receive() { return scheduler_.receive(scheduler_.block(self_)); }

void Context::stop() { scheduler_.block(self_).stopping = true; }

void Context::abort(const RankEnd& end) { scheduler_.abort(*scheduler_.block(self_).stop, end); }

bool Context::aborted() const { return scheduler_.aborted(scheduler_.block(self_)); }

}  // namespace tutti
