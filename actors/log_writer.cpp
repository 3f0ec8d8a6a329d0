#include "actors/log_writer.h"

namespace tutti {
namespace {

constexpr int kTellEvery = 32;  // few enough that what is told never fills Compute's mailbox
constexpr Nanoseconds kLookAgain = std::chrono::milliseconds(10);

}  // namespace

LogWriter::LogWriter(std::shared_ptr<LoggerDestination> destination, ActorId compute, Log& log)
    : destination_(std::move(destination)), compute_(compute), log_(log) {}

void LogWriter::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (const auto* logged = message.get_if<Logged>()) {
    take(context, *logged);
  } else if (const auto* from = message.get_if<LogFrom>()) {
    attempt([&] { destination_->open(from->start); });
  } else if (message.get_if<WriteMetrics>()) {
    attempt([&] { destination_->flush(/*sync=*/true); });
    context.reply(envelope, MetricsWritten{});
  } else if (message.get_if<Stop>()) {
    finish(context);
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

std::optional<TimePoint> LogWriter::idle(Context& context) {
  attempt([&] { destination_->flush(/*sync=*/false); });
  if (failed_ || !destination_->busy()) return std::nullopt;
  return context.now() + kLookAgain;
}

void LogWriter::take(Context& context, const Logged& logged) {
  lost_ += logged.lost;
  if (logged.lost > 0 && !std::exchange(told_of_loss_, true))
    log_.warning("logger " + destination_->name() + " does not keep up; records are lost");
  attempt([&] {
    for (const LogEntry& entry : *logged.entries) entry.tell(*destination_);
  });
  if (++untold_ < kTellEvery) return;
  context.send(compute_, LogsTaken{std::exchange(untold_, 0)});
}

void LogWriter::finish(Context& context) {
  const TimePoint until = context.now() + destination_->finishes_within();
  bool done = failed_;
  while (!done) {
    const bool late = context.now() >= until;
    attempt([&] { done = destination_->finish(late); });
    done = done || late || failed_;
    if (!done) context.sleep(kLookAgain);
  }
  if (lost_ > 0)
    log_.warning("logger " + destination_->name() + " lost " + std::to_string(lost_) + " records");
}

void LogWriter::attempt(const std::function<void()>& work) try {
  if (!failed_) work();
} catch (const Aborted&) {
  throw;
} catch (const std::exception& error) {
  failed_ = true;
  log_.warning("logger " + destination_->name() + " failed, and is used no more: " + error.what());
}

}  // namespace tutti
