#include "io/journal/journal_recorder.h"

#include <span>

namespace tutti {

JournalRecorder::JournalRecorder(const std::string& path, const RecordedJob& job)
    : full_(job.level == JournalLevel::kFull), writer_(path, job.to_json()) {}

void JournalRecorder::record(const TraceEvent& event) {
  ring_.record(event);
  writer_.event({event.time, name(actor_of(event.kind)), name(event.kind), event.step, event.detail});
}

void JournalRecorder::delivered(const Delivery& delivery) {
  writer_.delivery(delivery.to, delivery.from, delivery.message, delivery.time);
}

void JournalRecorder::digest(const Digest& digest) {
  writer_.digest(digest.key, digest.step, digest.value, digest.parts);
}

void JournalRecorder::name_parts(std::string_view key, const std::vector<std::string>& names) {
  if (full_) writer_.parts(key, names);
}

double JournalRecorder::input(RecordedInput what, double measured) {
  writer_.input(name(what), std::as_bytes(std::span(&measured, 1)));
  return measured;
}

std::string JournalRecorder::input(RecordedInput what, std::string measured) {
  writer_.input(name(what), std::as_bytes(std::span(measured)));
  return measured;
}

void JournalRecorder::end(const RankEnd& end) { writer_.end(end_text(end)); }

}  // namespace tutti
