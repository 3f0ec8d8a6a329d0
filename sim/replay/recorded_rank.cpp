#include "sim/replay/recorded_rank.h"

#include <tuple>

#include "io/journal/journal_steps.h"
#include "runtime/error.h"

namespace tutti {

RecordedRank::RecordedRank(const std::string& path) : cursor_(path) {
  const auto record = cursor_.next();
  const auto* head = record ? std::get_if<JournalHead>(&*record) : nullptr;
  if (!head) throw UserError(path + ": the journal has no head");
  head_ = RecordedJob::from_json(head->json);
}

bool RecordedRank::read_on() {
  const auto record = cursor_.next();
  if (!record) return false;
  if (const auto* delivery = std::get_if<JournalDelivery>(&*record)) {
    deliveries_.push_back(
        {std::string(delivery->to), std::string(delivery->from), std::string(delivery->message)});
  } else if (const auto* event = std::get_if<JournalEvent>(&*record)) {
    if (event->kind == name(TraceKind::kBatch)) begun_ = event->step + 1;
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

void RecordedRank::read_to_end() {
  while (read_on()) {
  }
}

const DeliveryScript::Line* RecordedRank::next_delivery() {
  while (deliveries_.empty())
    if (!read_on()) return nullptr;
  line_ = deliveries_.front().line();
  return &line_;
}

void RecordedRank::taken() {
  deliveries_.pop_front();
  ++taken_;
}

std::optional<RecordedRank::Hash> RecordedRank::next_hash(const std::string& key) {
  auto& waiting = hashes_[key];
  while (waiting.empty())
    if (!read_on()) return std::nullopt;
  Hash hash = std::move(waiting.front());
  waiting.pop_front();
  return hash;
}

std::optional<std::string> RecordedRank::take_input(RecordedInput what) {
  auto input = next_input(what);
  if (input) inputs_[name(what)].pop_front();
  return input;
}

std::optional<std::string> RecordedRank::next_input(RecordedInput what) {
  auto& waiting = inputs_[name(what)];
  while (waiting.empty())
    if (!read_on()) return std::nullopt;
  return waiting.front();
}

bool RecordedRank::has_all_of(int64_t step) const { return came_to_end(end_) || step < begun_; }

std::optional<RecordedRank::Left> RecordedRank::left_over(const Counts& counts) const {
  const auto place = [](const Left& left) { return std::tuple(left.step, DigestOrder::place(left.key)); };
  std::optional<Left> first;
  for (const auto& [key, waiting] : hashes_) {
    if (waiting.empty()) continue;
    Left left{counted_step(key, waiting.front().step), key};
    if (counts(left) && (!first || place(left) < place(*first))) first = std::move(left);
  }
  return first;
}

std::string RecordedRank::text_of_end() const {
  if (!end_.empty()) return "with: " + end_;
  const std::string where = "in step " + std::to_string(last_step_ + 1) + ", ";
  if (!incomplete_.empty()) return where + "where it could not be written on: " + incomplete_;
  if (cursor_.torn_bytes() > 0)
    return where + "where it is torn or damaged, at byte " + std::to_string(cursor_.position());
  return where + "where it was killed or could not be written on";
}

}  // namespace tutti
