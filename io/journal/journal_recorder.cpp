#include "io/journal/journal_recorder.h"

#include <span>

namespace tutti {

JournalRecorder::JournalRecorder(const std::string& path, const RecordedJob& job)
    : full_(job.level == JournalLevel::kFull), writer_(path, job.to_json()) {}

void JournalRecorder::record(const Happening& happening) {
  ring_.record(happening);
  writer_.event(happening);
}

void JournalRecorder::delivered(const Delivery& delivery) {
  writer_.delivery(delivery.to, delivery.from, delivery.message, delivery.time);
}

void JournalRecorder::digest(const Digest& digest) {
  writer_.digest(digest.thing, digest.step, digest.value, digest.parts);
}

void JournalRecorder::name_parts(std::string_view thing, const std::vector<std::string>& names) {
  if (full_) writer_.parts(thing, names);
}

double JournalRecorder::answer(std::string_view what, double measured) {
  writer_.answer(what, std::as_bytes(std::span(&measured, 1)));
  return measured;
}

std::string JournalRecorder::answer(std::string_view what, std::string measured) {
  writer_.answer(what, std::as_bytes(std::span(measured)));
  return measured;
}

void JournalRecorder::end(const std::string& how) { writer_.end(how); }

}  // namespace tutti
