#include "sim/replay/recorded_rank.h"

#include <tuple>

#include "actors/messages/messages.h"
#include "io/journal/journal_steps.h"

namespace tutti {

RecordedRank::RecordedRank(const std::string& path, RecordedJob head)
    : cursor_(path), head_(std::move(head)) {
  cursor_.next();  // the head
}

bool RecordedRank::read_record() {
  const auto record = cursor_.next();
  if (!record) return false;
  if (const auto* delivery = std::get_if<JournalDelivery>(&*record)) {
    add(*delivery);
  } else if (const auto* event = std::get_if<JournalEvent>(&*record)) {
    if (event->kind == name(TraceKind::kBatch)) begun_.last = event->step + 1;
    if (begun_.first == 0) begun_.first = begun_.last;
  } else if (const auto* digest = std::get_if<JournalDigest>(&*record)) {
    last_step_ = digest->step;
    hashes_[std::string(digest->key)].push_back({digest->step, digest->value, digest->parts});
  } else if (const auto* input = std::get_if<JournalInput>(&*record)) {
    inputs_[std::string(input->what)].emplace_back(reinterpret_cast<const char*>(input->bytes.data()),
                                                   input->bytes.size());
  } else if (const auto* parts = std::get_if<JournalParts>(&*record)) {
    parts_[std::string(parts->key)] = parts->names;
  } else if (const auto* end = std::get_if<JournalEnd>(&*record)) {
    end_ = end->text;
  } else if (const auto* cut = std::get_if<JournalIncomplete>(&*record)) {
    incomplete_ = cut->why;
  }
  return true;
}

// No result depends on what logs take: a replay does not follow it.
void RecordedRank::add(const JournalDelivery& delivery) {
  const std::string to(delivery.to);
  if (delivery.message == LogFrom::kName) logs_.insert(to);
  if (!logs_.contains(to))
    deliveries_.push_back({to, std::string(delivery.from), std::string(delivery.message)});
}

void RecordedRank::read_to_end() {
  while (read_record()) {
  }
}

const DeliveryScript::Line* RecordedRank::next_delivery() {
  while (deliveries_.empty())
    if (!read_record()) return nullptr;
  const OwnedLine& line = deliveries_.front();
  line_ = {line.to, line.from, line.message};
  return &line_;
}

void RecordedRank::advance() {
  deliveries_.pop_front();
  ++deliveries_read_;
}

std::optional<RecordedRank::Hash> RecordedRank::next_hash(const std::string& key) {
  auto& waiting = hashes_[key];
  while (waiting.empty())
    if (!read_record()) return std::nullopt;
  Hash hash = std::move(waiting.front());
  waiting.pop_front();
  return hash;
}

std::optional<std::string> RecordedRank::pop_input(RecordedInput what) {
  auto input = next_input(what);
  if (input) inputs_[name(what)].pop_front();
  return input;
}

std::optional<std::string> RecordedRank::next_input(RecordedInput what) {
  auto& waiting = inputs_[name(what)];
  while (waiting.empty())
    if (!read_record()) return std::nullopt;
  return waiting.front();
}

std::optional<std::string> RecordedRank::last_of_start(RecordedInput what) {
  while (begun_.last == 0 && read_record()) {
  }
  const auto& waiting = inputs_[name(what)];
  return waiting.empty() ? std::nullopt : std::optional(waiting.back());
}

bool RecordedRank::has_whole_step(int64_t step) const { return ended_without_error() || step < begun_.last; }

std::optional<RecordedRank::Unused> RecordedRank::first_unused(
    const std::function<bool(const Unused&)>& filter) const {
  const auto place = [](const Unused& one) { return std::tuple(one.step, DigestOrder::place(one.key)); };
  std::optional<Unused> first;
  for (const auto& [key, waiting] : hashes_) {
    if (waiting.empty()) continue;
    Unused unused{counted_step(key, waiting.front().step), key};
    if (filter(unused) && (!first || place(unused) < place(*first))) first = std::move(unused);
  }
  return first;
}

std::string RecordedRank::end_description() const {
  if (!end_.empty()) return "with: " + end_;
  const std::string where = "in step " + std::to_string(last_step_ + 1) + ", ";
  if (!incomplete_.empty()) return where + "where it could not be written on: " + incomplete_;
  if (cursor_.torn_bytes() > 0)
    return where + "where it is torn or damaged, at byte " + std::to_string(cursor_.position());
  return where + "where it was killed or could not be written on";
}

}  // namespace tutti
