#include "io/journal_steps.h"

#include <utility>

namespace tutti {
namespace {

constexpr std::string_view kWeights = "compute/weights";

// Digests tell how many steps were done before: weights are what these came to, all else is of the next.
int64_t counted_step(const JournalDigest& digest) {
  return digest.thing == kWeights ? digest.step : digest.step + 1;
}

}  // namespace

std::tuple<int, std::size_t, std::string_view> ThingOrder::place(std::string_view thing) {
  int row = 3;
  if (thing == "compute/batch") row = 0;
  if (thing == "compute/loss") row = 1;
  if (thing.starts_with("sync/bucket ")) row = 2;
  if (thing == kWeights) row = 4;
  return {row, thing.size(), thing};
}

std::optional<JournalDigest> JournalSteps::read_digest() {
  while (auto record = cursor_.next()) {
    if (auto* digest = std::get_if<JournalDigest>(&*record)) return std::move(*digest);
    if (auto* parts = std::get_if<JournalParts>(&*record))
      names_[std::string(parts->thing)] =
          std::make_shared<const std::vector<std::string>>(std::move(parts->names));
  }
  return std::nullopt;
}

void JournalSteps::note(JournalDigest digest) {
  const auto names = names_.find(digest.thing);
  open_->hashes[std::string(digest.thing)] = {digest.value, std::move(digest.parts),
                                              names == names_.end() ? nullptr : names->second};
}

std::optional<JournalSteps::Step> JournalSteps::next() {
  while (auto digest = read_digest()) {
    std::optional<Step> whole;
    const int64_t number = counted_step(*digest);
    if (open_ && open_->number != number) whole = std::move(open_);
    if (!open_ || whole) open_ = Step{number, {}};
    note(std::move(*digest));
    if (whole) return whole;
  }
  return std::exchange(open_, std::nullopt);
}

}  // namespace tutti
