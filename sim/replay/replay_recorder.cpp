#include "sim/replay/replay_recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "actors/messages/messages.h"
#include "io/journal/journal_steps.h"
#include "tensors/memory/meter.h"

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
  has_joins_ = has_joins_ || delivery.message == Join::kName;
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

bool RecordedRank::has_joins() { return has_joins_ || (next_delivery() && has_joins_); }

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

std::vector<RecordedRank::Unused> RecordedRank::unused() const {
  std::vector<Unused> all;
  for (const auto& [key, waiting] : hashes_)
    if (!waiting.empty()) all.push_back({counted_step(key, waiting.front().step), key});
  std::ranges::stable_sort(
      all, {}, [](const Unused& one) { return std::tuple(one.step, DigestOrder::place(one.key)); });
  return all;
}

std::string RecordedRank::end_description() const {
  if (!end_.empty()) return "with: " + end_;
  const std::string where = "in step " + std::to_string(last_step_ + 1) + ", ";
  if (!incomplete_.empty()) return where + "where it could not be written on: " + incomplete_;
  if (cursor_.torn_bytes() > 0)
    return where + "where it is torn or damaged, at byte " + std::to_string(cursor_.position());
  return where + "where it was killed or could not be written on";
}

namespace {

constexpr const char* kLossKey = "compute/loss";

std::string actor_of(const std::string& key) { return key.substr(0, key.find('/')); }
double number_of(const std::string& bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
std::string name_of(const std::string& key) { return key.substr(key.find('/') + 1); }
// Digests taken before the first step count as of the first.
std::string step_text(int64_t step) { return "step " + std::to_string(std::max<int64_t>(1, step)); }

}  // namespace

std::string MovedFolder::operator()(const std::string& path) const {
  return path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
}

ReplayRecorder::ReplayRecorder(RecordedRank& recorded, Options options)
    : recorded_(recorded), options_(std::move(options)) {}

void ReplayRecorder::delivered(const Delivery& delivery) {
  const std::lock_guard lock(mutex_);
  last_message_[std::string(delivery.to)] = delivery.message;
}

void ReplayRecorder::name_parts(std::string_view key, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  parts_[std::string(key)] = names;
}

void ReplayRecorder::digest(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const std::string key(digest.key);
  const int64_t step = counted_step(key, digest.step);
  const auto recorded = recorded_.next_hash(key);
  if (!is_compared(key, step)) return;
  if (!recorded) {  // a difference, unless the record breaks off in this step
    if (recorded_.has_whole_step(step))
      throw ReplayFailed(place(key, step) + after(key) + ": " + name_of(key) + " is not in the record");
    return;
  }
  if (!matches(digest, *recorded)) throw ReplayFailed(difference(digest, *recorded));
  ++compared_;
}

bool ReplayRecorder::is_compared(std::string_view key, int64_t step) const {
  return (!options_.until || step <= *options_.until) && (options_.exact || key == kLossKey);
}

std::string ReplayRecorder::missing(int64_t last) {
  const std::lock_guard lock(mutex_);
  if (!options_.compare) return "";
  const auto all = recorded_.unused();
  const auto unused = std::ranges::find_if(
      all, [&](const auto& one) { return one.step <= last && is_compared(one.key, one.step); });
  if (unused == all.end()) return "";
  return place(unused->key, unused->step) + ": " + name_of(unused->key) +
         " is in the record, and the replay does not reach it";
}

std::string ReplayRecorder::place(const std::string& key, int64_t step) const {
  return "rank " + std::to_string(recorded_.head().rank) + ", " + step_text(step) + ", " + actor_of(key);
}

std::string ReplayRecorder::after(const std::string& key) {
  return ", after " + last_message_[actor_of(key)];
}

// Rounding adds up over the steps, and losses become small: the tolerance is relative to the largest loss.
bool ReplayRecorder::matches(const Digest& digest, const RecordedRank::Hash& recorded) {
  if (digest.step != recorded.step) return false;
  if (options_.exact) return digest.value == recorded.value;
  const auto replayed = std::bit_cast<double>(digest.value), original = std::bit_cast<double>(recorded.value);
  if (!std::isfinite(replayed) || !std::isfinite(original))
    return std::isfinite(replayed) == std::isfinite(original);
  largest_loss_ = std::max(largest_loss_, std::abs(original));
  return std::abs(replayed - original) <= options_.tolerance * largest_loss_;
}

std::string ReplayRecorder::difference(const Digest& digest, const RecordedRank::Hash& recorded) {
  const std::string key(digest.key);
  const std::string text =
      place(key, counted_step(key, recorded.step)) + after(key) + ": " + name_of(key) + " differs";
  if (digest.step != recorded.step)
    return text + ": the replay is in " + step_text(counted_step(key, digest.step));
  const auto& names = parts_[key];
  std::string where;
  for (std::size_t p = 0; p < digest.parts.size() && p < recorded.parts.size() && p < names.size(); ++p)
    if (digest.parts[p] != recorded.parts[p]) where += (where.empty() ? " in " : ", ") + names[p];
  return text + where;
}

double ReplayRecorder::input(RecordedInput what, double measured) {
  return number_of_input(what,
                         input(what, std::string(reinterpret_cast<const char*>(&measured), sizeof measured)));
}

double ReplayRecorder::number_of_input(RecordedInput what, const std::string& input) const {
  const double number = number_of(input);
  const bool is_ordinal = what == RecordedInput::kFailedAllocation && number > 0;
  return is_ordinal && options_.other_device ? FailedAllocation::kNotSeen : number;
}

std::optional<double> ReplayRecorder::next_input(RecordedInput what) {
  const std::lock_guard lock(mutex_);
  const auto next = recorded_.next_input(what);
  return next ? std::optional(number_of_input(what, *next)) : std::nullopt;
}

std::string ReplayRecorder::input(RecordedInput what, std::string measured) {
  const std::lock_guard lock(mutex_);
  std::string input = recorded_.pop_input(what).value_or(std::move(measured));
  return what == RecordedInput::kCheckpoint ? options_.moved(input) : input;
}

}  // namespace tutti
