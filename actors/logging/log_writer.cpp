#include "actors/logging/log_writer.h"

#include <algorithm>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kFlushInterval = std::chrono::milliseconds(10);

}  // namespace

Nanoseconds LogWriter::time_to_finish(const LoggerDestination& destination) try {
  return std::clamp(destination.finishes_within(), Nanoseconds(0), kMostToFinish);
} catch (...) {
  return kMostToFinish;
}

template <class Work>
void LogWriter::attempt(const Work& work) try {
  if (!failed_) work();
} catch (const Aborted&) {
  throw;
} catch (...) {
  failed_ = true;
  log_.warning(name_ + " failed, and gets no more records: " + handled_error());
}

void LogWriter::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (const auto* logged = message.get_if<Logged>()) {
    write(*logged);
  } else if (const auto* from = message.get_if<LogFrom>()) {
    attempt([&] { destination_->open(from->start); });
  } else if (message.get_if<SyncLog>()) {
    attempt([&] { destination_->flush(/*sync=*/true); });
    context.reply(envelope, LogSynced{});
  } else if (message.get_if<FinishLog>()) {
    finish(context);
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

std::optional<TimePoint> LogWriter::idle(Context& context) {
  bool busy = false;
  attempt([&] {
    destination_->flush(/*sync=*/false);
    busy = destination_->busy();
  });
  if (!busy) return std::nullopt;
  return context.now() + kFlushInterval;
}

void LogWriter::write(const Logged& logged) {
  int64_t unwritten = records_in(*logged.entries);
  attempt([&] {
    for (const LogEntry& entry : *logged.entries) {
      entry.log_to(*destination_);
      unwritten -= entry.is_record() ? 1 : 0;
    }
  });
  lost_ += unwritten;
  *logged.waiting -= logged.bytes;
}

void LogWriter::finish(Context& context) {
  const TimePoint until = context.now() + time_to_finish(*destination_);
  bool done = failed_;
  while (!done) {
    const bool late = context.now() >= until;
    attempt([&] { done = destination_->finish(late); });
    done = done || late || failed_;
    if (!done) context.sleep(kFlushInterval);
  }
  if (lost_ > 0) log_.warning(name_ + " lost " + std::to_string(lost_) + " records, since it failed");
}

}  // namespace tutti
