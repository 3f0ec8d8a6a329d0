#include "io/journal/journal_steps.h"

#include <utility>

namespace tutti {
namespace {

constexpr std::string_view kWeights = "compute/weights";

bool is_of_evaluation(std::string_view thing) {
  return thing.starts_with(kEvaluationBatch) || thing.starts_with(kEvaluationMetrics);
}

}  // namespace

int64_t counted_step(std::string_view thing, int64_t done) {
  return thing == kWeights || is_of_evaluation(thing) ? done : done + 1;
}

std::tuple<int, std::size_t, std::string_view> ThingOrder::place(std::string_view thing) {
  int row = 3;
  if (thing == "compute/batch") row = 0;
  if (thing == "compute/loss") row = 1;
  if (thing.starts_with("sync/bucket ")) row = 2;
  if (thing == kWeights) row = 4;
  if (thing.starts_with(kEvaluationBatch)) row = 5;
  if (thing.starts_with(kEvaluationMetrics)) row = 6;
  return {row, thing.size(), thing};
}

std::optional<JournalDigest> JournalSteps::read_digest() {
  while (auto record = cursor_.next()) {
    if (auto* digest = std::get_if<JournalDigest>(&*record)) return std::move(*digest);
    if (auto* parts = std::get_if<JournalParts>(&*record))
      names_[std::string(parts->thing)] =
          std::make_shared<const std::vector<std::string>>(std::move(parts->names));
    if (const auto* cut = std::get_if<JournalIncomplete>(&*record)) incomplete_ = cut->why;
    ended_ = ended_ || std::holds_alternative<JournalEnd>(*record);
  }
  return std::nullopt;
}

std::string JournalSteps::damage() const {
  if (!incomplete_.empty()) return "could not be written on: " + incomplete_;
  return cursor_.torn_bytes() > 0 ? "torn at byte " + std::to_string(cursor_.position()) : "";
}

std::string JournalSteps::key(std::string_view thing) {
  std::string key(thing);
  return is_of_evaluation(thing) ? key + " #" + std::to_string(++seen_[key]) : key;
}

void JournalSteps::note(JournalDigest digest) {
  const auto names = names_.find(digest.thing);
  open_->hashes[key(digest.thing)] = {digest.value, std::move(digest.parts),
                                      names == names_.end() ? nullptr : names->second};
}

std::optional<JournalSteps::Step> JournalSteps::next() {
  while (auto digest = read_digest()) {
    std::optional<Step> whole;
    const int64_t number = counted_step(digest->thing, digest->step);
    if (open_ && open_->number != number) whole = std::move(open_);
    if (!open_ || whole) {
      open_ = Step{number, {}};
      seen_.clear();
    }
    note(std::move(*digest));
    if (whole) return whole;
  }
  return std::exchange(open_, std::nullopt);
}

}  // namespace tutti
