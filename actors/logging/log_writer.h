#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// A log destination's own thread. Whatever the destination does, the others are not held up: what it throws
// is a warning, after which it is called no more, and what it would have been told is counted.
class LogWriter final : public Actor {
 public:
  static constexpr Nanoseconds kMostToFinish = std::chrono::seconds(10);

  // `name`: how warnings call it, "logger CsvLogger".
  LogWriter(std::string name, std::shared_ptr<LoggerDestination> destination, Log& log)
      : name_(std::move(name)), destination_(std::move(destination)), log_(log) {}

  // What a destination has for its end: as long as it says, within reason, since other ranks wait.
  static Nanoseconds time_to_finish(const LoggerDestination& destination);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void take(const Logged& logged);
  void finish(Context& context);
  void attempt(const std::function<void()>& work);

  std::string name_;
  std::shared_ptr<LoggerDestination> destination_;
  Log& log_;
  bool failed_ = false;
  int64_t lost_ = 0;  // records, since it failed
};

}  // namespace tutti
