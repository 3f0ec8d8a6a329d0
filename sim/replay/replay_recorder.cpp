#include "sim/replay/replay_recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "io/journal/journal_steps.h"

namespace tutti {
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
  const auto unused = recorded_.first_unused(
      [&](const RecordedRank::Unused& one) { return one.step <= last && is_compared(one.key, one.step); });
  if (!unused) return "";
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
  return std::abs(replayed - original) <= kTolerance * largest_loss_;
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
  return number_of(input(what, std::string(reinterpret_cast<const char*>(&measured), sizeof measured)));
}

std::optional<double> ReplayRecorder::next_input(RecordedInput what) {
  const std::lock_guard lock(mutex_);
  const auto next = recorded_.next_input(what);
  return next ? std::optional(number_of(*next)) : std::nullopt;
}

std::string ReplayRecorder::input(RecordedInput what, std::string measured) {
  const std::lock_guard lock(mutex_);
  std::string input = recorded_.pop_input(what).value_or(std::move(measured));
  return what == RecordedInput::kCheckpoint ? options_.moved(input) : input;
}

}  // namespace tutti
