#include "runtime/actor/actor.h"

#include <utility>

#include "runtime/actor/cell.h"
#include "runtime/actor/scheduler.h"

namespace tutti {

TimePoint Context::now() const { return scheduler_.now(); }

void Context::send(ActorId to, Message message) {
  scheduler_.send(scheduler_.cell(self_), to, Envelope{self_, std::move(message), nullptr});
}

ReplySlotPtr Context::post(ActorId to, Message message) {
  Cell& self = scheduler_.cell(self_);
  auto slot = std::make_shared<ReplySlot>(self);
  slot->asked = to.index;
  slot->question = message.name();
  scheduler_.send(self, to, Envelope{self_, std::move(message), slot});
  return slot;
}

Message Context::wait(const ReplySlotPtr& slot) { return scheduler_.await(scheduler_.cell(self_), *slot); }

bool Context::wait_until(const ReplySlotPtr& slot, TimePoint until) {
  return scheduler_.await_until(scheduler_.cell(self_), *slot, until);
}

void Context::reply(Envelope& envelope, Message message) {
  const ReplySlotPtr slot = std::move(envelope.slot);
  TUTTI_ASSERT(
      slot, std::string(message.name()) + " answers a message that was not asked, or was answered already");
  scheduler_.answer(*slot, std::move(message), ReplySlot::kAnswered);
}

void Context::sleep(Nanoseconds duration) { scheduler_.sleep(scheduler_.cell(self_), now() + duration); }

Envelope Context::receive() { return scheduler_.receive(scheduler_.cell(self_)); }

void Context::stop() { scheduler_.cell(self_).stopping = true; }

void Context::abort(const RankEnd& end) { scheduler_.abort(*scheduler_.cell(self_).fate, end); }

bool Context::aborted() const { return scheduler_.aborted(scheduler_.cell(self_)); }

}  // namespace tutti
