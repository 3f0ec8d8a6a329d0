#pragma once

#include <functional>
#include <memory>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/log.h"
#include "training/logger_destination.h"

namespace tutti {

// A log destination's own thread. Whatever the destination does, the others are not held up: what it throws
// is a warning, after which it is called no more.
class LogWriter final : public Actor {
 public:
  LogWriter(std::shared_ptr<LoggerDestination> destination, ActorId compute, Log& log);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void take(Context& context, const Logged& logged);
  void finish(Context& context);
  void attempt(const std::function<void()>& work);

  std::shared_ptr<LoggerDestination> destination_;
  ActorId compute_;
  Log& log_;
  bool failed_ = false;
  bool told_of_loss_ = false;
  int64_t lost_ = 0;  // records
  int untold_ = 0;    // Logged that Compute does not know to be taken
};

}  // namespace tutti
