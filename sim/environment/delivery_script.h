#pragma once

#include <optional>
#include <string_view>

#include "runtime/actor/message.h"

namespace tutti {

// The order in which the actors of each rank took their messages in a recorded run.
class DeliveryScript {
 public:
  struct Line {
    std::string_view to, from, message;  // actors of the rank, "" = from outside the cast; until `taken`
  };

  virtual ~DeliveryScript() = default;
  // What an actor of the rank takes next; null where the record ends.
  virtual const Line* next(int rank) = 0;
  virtual void taken(int rank) = 0;
  // The message of the next line when nobody in the cast will send it: it came from outside. Once a line.
  virtual std::optional<Message> from_outside(int rank) = 0;
};

}  // namespace tutti
