#pragma once

#include <string_view>

namespace tutti {

// The order in which the actors of each rank took their messages in a recorded run.
class DeliveryScript {
 public:
  struct Line {
    std::string_view to, from, message;  // actors of the rank, "" = from outside the cast; valid until `taken`
  };

  virtual ~DeliveryScript() = default;
  // What an actor of the rank takes next; null where the record ends.
  virtual const Line* next(int rank) = 0;
  virtual void taken(int rank) = 0;
};

}  // namespace tutti
