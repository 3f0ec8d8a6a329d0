#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/actor/message.h"

namespace tutti {

struct Cell;

// One answer on its way to the actor that asked. The answerer writes `answer` once and then `state`.
struct ReplySlot {
  enum State : uint8_t { kWaiting, kAnswered, kBroken };  // broken: the asked actor stopped without answering

  explicit ReplySlot(Cell& asker) : asker(asker) {}

  Cell& asker;
  Message answer;
  std::atomic<State> state{kWaiting};
  uint32_t asked = UINT32_MAX;  // ActorId of whom, and what, for reports
  const char* question = "";
};

}  // namespace tutti
