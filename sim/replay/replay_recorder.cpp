#include "sim/replay/replay_recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "io/journal/journal_steps.h"

namespace tutti {
namespace {

constexpr const char* kLoss = "compute/loss";

std::string actor_of(const std::string& thing) { return thing.substr(0, thing.find('/')); }
double number_of(const std::string& bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
std::string name_of(const std::string& thing) { return thing.substr(thing.find('/') + 1); }
// What is before the first step is said of it.
std::string step_text(int64_t step) { return "step " + std::to_string(std::max<int64_t>(1, step)); }

}  // namespace

std::string Moved::operator()(const std::string& path) const {
  return path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
}

ReplayRecorder::ReplayRecorder(RecordedRank& recorded, Options options)
    : recorded_(recorded), options_(std::move(options)) {}

void ReplayRecorder::delivered(const Delivery& delivery) {
  const std::lock_guard lock(mutex_);
  last_message_[std::string(delivery.to)] = delivery.message;
}

void ReplayRecorder::name_parts(std::string_view thing, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  parts_[std::string(thing)] = names;
}

void ReplayRecorder::digest(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const std::string thing(digest.thing);
  const int64_t step = counted_step(thing, digest.step);
  const auto recorded = recorded_.next_hash(thing);
  if (!counts(thing, step)) return;
  if (!recorded) {  // no difference where the record breaks off
    if (recorded_.has_all_of(step))
      throw ReplayDifference(place(thing, step) + after(thing) + ": " + name_of(thing) +
                             " is not in the record");
    return;
  }
  if (!matches(digest, *recorded)) throw ReplayDifference(difference(digest, *recorded));
  ++compared_;
}

bool ReplayRecorder::counts(std::string_view thing, int64_t step) const {
  return (!options_.until || step <= *options_.until) && (options_.exact || thing == kLoss);
}

std::string ReplayRecorder::missing(int64_t last) {
  const std::lock_guard lock(mutex_);
  if (!options_.compare) return "";
  const auto left = recorded_.left_over(
      [&](const RecordedRank::Left& one) { return one.step <= last && counts(one.thing, one.step); });
  if (!left) return "";
  return place(left->thing, left->step) + ": " + name_of(left->thing) +
         " is in the record, and the replay does not come to it";
}

std::string ReplayRecorder::place(const std::string& thing, int64_t step) const {
  return "rank " + std::to_string(recorded_.head().rank) + ", " + step_text(step) + ", " + actor_of(thing);
}

std::string ReplayRecorder::after(const std::string& thing) {
  return ", after " + last_message_[actor_of(thing)];
}

// Rounding adds up over the steps, and losses become small: what counts is how far they have come down.
bool ReplayRecorder::matches(const Digest& digest, const RecordedRank::Hash& recorded) {
  if (digest.step != recorded.step) return false;
  if (options_.exact) return digest.value == recorded.value;
  const auto mine = std::bit_cast<double>(digest.value), theirs = std::bit_cast<double>(recorded.value);
  if (!std::isfinite(mine) || !std::isfinite(theirs)) return std::isfinite(mine) == std::isfinite(theirs);
  largest_loss_ = std::max(largest_loss_, std::abs(theirs));
  return std::abs(mine - theirs) <= kTolerance * largest_loss_;
}

std::string ReplayRecorder::difference(const Digest& digest, const RecordedRank::Hash& recorded) {
  const std::string thing(digest.thing);
  const std::string text =
      place(thing, counted_step(thing, recorded.step)) + after(thing) + ": " + name_of(thing) + " differs";
  if (digest.step != recorded.step)
    return text + ": the replay is in " + step_text(counted_step(thing, digest.step));
  const auto& names = parts_[thing];
  std::string where;
  for (std::size_t p = 0; p < digest.parts.size() && p < recorded.parts.size() && p < names.size(); ++p)
    if (digest.parts[p] != recorded.parts[p]) where += (where.empty() ? " in " : ", ") + names[p];
  return text + where;
}

double ReplayRecorder::answer(std::string_view what, double measured) {
  return number_of(answer(what, std::string(reinterpret_cast<const char*>(&measured), sizeof measured)));
}

std::optional<double> ReplayRecorder::foretold(std::string_view what) {
  const std::lock_guard lock(mutex_);
  const auto coming = recorded_.coming_answer(std::string(what));
  return coming ? std::optional(number_of(*coming)) : std::nullopt;
}

std::string ReplayRecorder::answer(std::string_view what, std::string measured) {
  const std::lock_guard lock(mutex_);
  std::string answer = recorded_.next_answer(std::string(what)).value_or(std::move(measured));
  return what == kCheckpoint ? options_.moved(answer) : answer;
}

}  // namespace tutti
