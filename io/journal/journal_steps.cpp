#include "io/journal/journal_steps.h"

#include <utility>

#include "io/journal/recorded_run.h"

namespace tutti {
namespace {

constexpr std::string_view kWeights = "compute/weights";

bool is_of_evaluation(std::string_view key) {
  return key.starts_with(kEvaluationBatch) || key.starts_with(kEvaluationMetrics);
}

}  // namespace

int64_t counted_step(std::string_view key, int64_t done) {
  return key == kWeights || is_of_evaluation(key) ? done : done + 1;
}

std::tuple<int, std::size_t, std::string_view> DigestOrder::place(std::string_view key) {
  int row = 3;
  if (key == "compute/batch") row = 0;
  if (key == "compute/loss") row = 1;
  if (key.starts_with("sync/bucket ") || key.starts_with("sync/gradients ")) row = 2;
  if (key == kWeights) row = 4;
  if (key.starts_with(kEvaluationBatch)) row = 5;
  if (key.starts_with(kEvaluationMetrics)) row = 6;
  return {row, key.size(), key};
}

std::optional<JournalDigest> JournalSteps::read_digest() {
  while (auto record = cursor_.next()) {
    if (auto* digest = std::get_if<JournalDigest>(&*record)) return std::move(*digest);
    if (auto* parts = std::get_if<JournalParts>(&*record))
      names_[std::string(parts->key)] =
          std::make_shared<const std::vector<std::string>>(std::move(parts->names));
    if (const auto* cut = std::get_if<JournalIncomplete>(&*record)) incomplete_ = cut->why;
    if (const auto* end = std::get_if<JournalEnd>(&*record)) {
      ended_ = true;
      ended_without_error_ = ended_without_error(end->text);
    }
  }
  return std::nullopt;
}

std::string JournalSteps::damage() const {
  if (!incomplete_.empty()) return "could not be written on: " + incomplete_;
  return cursor_.damaged() ? "damaged at byte " + std::to_string(cursor_.position()) : "";
}

void JournalSteps::add(JournalDigest digest) {
  std::string key(digest.key);
  const int count = ++counts_[key];
  if (is_of_evaluation(key)) key += " #" + std::to_string(count);
  const auto names = names_.find(digest.key);
  open_->hashes[key] = {digest.value, std::move(digest.parts),
                        names == names_.end() ? nullptr : names->second, count};
}

std::optional<JournalSteps::Step> JournalSteps::next() {
  while (auto digest = read_digest()) {
    std::optional<Step> whole;
    const int64_t number = counted_step(digest->key, digest->step);
    if (open_ && open_->number != number) whole = std::move(open_);
    if (!open_ || whole) {
      open_ = Step{.number = number, .hashes = {}};
      counts_.clear();
    }
    add(std::move(*digest));
    if (whole) return whole;
  }
  if (open_) open_->whole = ended_without_error_;
  return std::exchange(open_, std::nullopt);
}

}  // namespace tutti
