#pragma once

#include <memory>
#include <string>

#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// Runs a log destination on a thread of its own, so that no other actor waits for the destination. An
// exception is a warning; later records are not delivered, but counted.
class LogWriter final : public Actor {
 public:
  static constexpr Nanoseconds kMostToFinish = std::chrono::seconds(10);

  // `name`: in warnings, "logger CsvLogger".
  LogWriter(std::string name, std::shared_ptr<LoggerDestination> destination, Log& log)
      : name_(std::move(name)), destination_(std::move(destination)), log_(log) {}

  // The time limit for LoggerDestination::finish: as the destination says, at most kMostToFinish, since other
  // ranks wait.
  static Nanoseconds time_to_finish(const LoggerDestination& destination);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void write(const Logged& logged);
  void finish(Context& context);
  template <class Work>
  void attempt(const Work& work);

  std::string name_;
  std::shared_ptr<LoggerDestination> destination_;
  Log& log_;
  bool failed_ = false;
  int64_t lost_ = 0;  // records, since it failed
};

}  // namespace tutti
