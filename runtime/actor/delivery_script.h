#pragma once

#include <optional>
#include <string_view>

#include "runtime/actor/message.h"

namespace tutti {

// The recorded order in which the actors of each rank take their messages.
class DeliveryScript {
 public:
  struct Line {
    std::string_view to, from,
        message;  // actors of the rank, `from` = "": from outside; valid until advance()
  };

  virtual ~DeliveryScript() = default;
  // The rank's next delivery; null at the end of the record.
  virtual const Line* next(int rank) = 0;
  virtual void advance(int rank) = 0;
  // The next message if from outside, so that no actor will send this message. Called once for each line.
  virtual std::optional<Message> from_outside(int rank) = 0;
  // True if records of this kind have no line for the message: its actor takes the message as it comes.
  virtual bool is_unrecorded(int /*rank*/, std::string_view /*message*/) { return false; }
};

}  // namespace tutti
