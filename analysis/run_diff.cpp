#include "analysis/run_diff.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <set>

#include "io/journal/journal_steps.h"
#include "io/journal/recorded_run.h"
#include "recipe/setting.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxListed = 5;
constexpr std::string_view kLoss = "compute/loss";

using Hash = JournalSteps::Hash;
using Step = JournalSteps::Step;

struct Difference {
  int64_t step = 0;
  std::string key;
  int rank = 0;
  Hash a, b;

  bool operator<(const Difference& other) const {
    return std::tuple(step, DigestOrder::place(key), rank) <
           std::tuple(other.step, DigestOrder::place(other.key), other.rank);
  }
};

// The steps with a recorded loss.
struct Range {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;

  void add(const Range& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  bool operator==(const Range&) const = default;
  std::string text() const {
    return last == 0 ? "none" : std::to_string(first) + " to " + std::to_string(last);
  }
};

// One rank's journal of one run.
struct RankRecord {
  Range steps;
  bool ended = false;
  std::string damage;

  void add(const Step& step) {
    if (step.hashes.find(kLoss) != step.hashes.end()) steps.add({step.number, step.number});
  }
};

// The comparison of one rank.
struct RankResult {
  int64_t steps = 0, digests = 0;
  RankRecord a, b;
};

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMaxListed) text += " and " + std::to_string(names.size() - kMaxListed) + " more";
  return text;
}

std::string counted(int64_t count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

// Buckets with different parameters cannot be compared, even if their numbers are equal.
bool comparable(const Hash& a, const Hash& b) {
  return a.parts.size() == b.parts.size() &&
         (a.names == b.names || (a.names && b.names && *a.names == *b.names));
}

// The step in which a record breaks off may miss passes or attempts: its last digest of a key is then of an
// earlier pass than the other record's.
bool is_same_pass(const Step& a, const Hash& ours, const Step& b, const Hash& theirs) {
  return (a.whole && b.whole) || ours.count == theirs.count;
}

// Compares the two journals of one rank.
class RankDiff {
 public:
  // `same_kind`: of digests; else only losses are compared.
  RankDiff(int rank, bool same_kind, const std::string& path_a, const std::string& path_b, RankResult& result)
      : rank_(rank), same_kind_(same_kind), a_(path_a), b_(path_b), result_(result) {}

  // The first difference up to step `last`.
  std::optional<Difference> first(int64_t last);

 private:
  static std::optional<Step> next(JournalSteps& steps, RankRecord& record) {
    auto step = steps.next();
    if (step) {
      record.add(*step);
    } else {
      record.ended = steps.ended();
      record.damage = steps.damage();
    }
    return step;
  }
  std::optional<Difference> compare(const Step& a, const Step& b);

  int rank_;
  bool same_kind_;
  JournalSteps a_, b_;
  RankResult& result_;
};

std::optional<Difference> RankDiff::first(int64_t last) {
  auto a = next(a_, result_.a), b = next(b_, result_.b);
  while (a && b && std::max(a->number, b->number) <= last) {
    const int64_t order = a->number - b->number;
    if (order == 0)
      if (auto difference = compare(*a, *b)) return difference;
    if (order <= 0) a = next(a_, result_.a);
    if (order >= 0) b = next(b_, result_.b);
  }
  for (; a && a->number <= last;) a = next(a_, result_.a);
  for (; b && b->number <= last;) b = next(b_, result_.b);
  return std::nullopt;
}

std::optional<Difference> RankDiff::compare(const Step& a, const Step& b) {
  bool trained = false;
  for (const auto& [key, ours] : a.hashes) {
    const auto theirs = b.hashes.find(key);
    if (theirs == b.hashes.end() || !comparable(ours, theirs->second)) continue;
    if (!is_same_pass(a, ours, b, theirs->second) || (!same_kind_ && key != kLoss)) continue;
    ++result_.digests;
    trained = trained || key == kLoss;
    if (ours.value != theirs->second.value) return Difference{a.number, key, rank_, ours, theirs->second};
  }
  if (trained) ++result_.steps;
  return std::nullopt;
}

std::string hex(uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, value);
  return text;
}

std::string decimal(uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(bits));
  return text;
}

std::vector<std::string> differing_parts(const Difference& difference) {
  const auto& [a, b] = std::tie(difference.a, difference.b);
  std::vector<std::string> names;
  for (std::size_t p = 0; a.names && p < std::min(a.parts.size(), a.names->size()); ++p)
    if (a.parts[p] != b.parts[p]) names.push_back((*a.names)[p]);
  return names;
}

// The loss is compared by value, other keys by digest.
std::string text_of(const Difference& difference) {
  const std::string& key = difference.key;
  const std::size_t slash = key.find('/');
  const bool loss = key == kLoss;
  const auto value = [loss](const Hash& hash) { return loss ? decimal(hash.value) : hex(hash.value); };
  const auto parts = differing_parts(difference);
  return (difference.step == 0 ? "before step 1" : "step " + std::to_string(difference.step)) + ", rank " +
         std::to_string(difference.rank) + ", " + key.substr(0, slash) + ": " + key.substr(slash + 1) +
         (parts.empty() ? "" : ", in " + listed(parts)) + (loss ? " (" : " (digest ") + value(difference.a) +
         " against " + value(difference.b) + ")";
}

void require_digests(const std::string& run_dir, const RecordedRun& run) {
  if (run.heads[0].level != JournalLevel::kFull)
    throw UserError(run_dir + ": recorded at journal.level = \"control\", which has no digests to compare");
}

std::string recipe_text(const RecordedRun& a, const RecordedRun& b) {
  const auto recipe = [](const RecordedRun& run) {
    return parse_recipe(run.heads[0].recipe, run.folder + ": the recorded recipe");
  };
  const auto different = recipe_difference(recipe(a), recipe(b));
  return different.empty() ? "" : "recipes differ: " + listed(different) + "\n";
}

class Diff {
 public:
  // `name_a`, `name_b`: as the user gave them.
  Diff(std::string name_a, RecordedRun a, std::string name_b, RecordedRun b)
      : name_a_(std::move(name_a)), name_b_(std::move(name_b)), a_(std::move(a)), b_(std::move(b)) {}

  RunDiff run();

 private:
  void check_comparable() const;
  bool has_same_digests() const { return a_.heads[0].digests == b_.heads[0].digests; }
  std::string equal_text() const;
  std::string truncation_text(const std::string& name, RankRecord RankResult::*run) const;
  Range steps(RankRecord RankResult::*run) const;
  int64_t digests() const;
  std::string ranges() const {
    return name_a_ + " has steps " + steps(&RankResult::a).text() + ", " + name_b_ + " " +
           steps(&RankResult::b).text();
  }

  std::string name_a_, name_b_;
  RecordedRun a_, b_;
  std::vector<RankResult> results_;  // by rank
};

RunDiff Diff::run() {
  check_comparable();
  std::optional<Difference> first;
  results_.resize(static_cast<std::size_t>(a_.world()));
  for (int r = 0; r < a_.world(); ++r) {
    const int64_t last = first ? first->step : std::numeric_limits<int64_t>::max();
    auto difference = RankDiff(r, has_same_digests(), a_.path(r), b_.path(r), results_[r]).first(last);
    if (difference && (!first || *difference < *first)) first = std::move(difference);
  }
  const std::string recipes =
      recipe_text(a_, b_) +
      (has_same_digests() ? "" : "digests are of different kinds: only losses are compared\n");
  if (first) return {false, recipes + "first difference: " + text_of(*first)};
  if (digests() == 0) throw UserError("the runs have no digests in common: " + ranges());
  const std::string cut = truncation_text(name_a_, &RankResult::a) + truncation_text(name_b_, &RankResult::b);
  return {cut.empty(), recipes + equal_text() + cut};
}

void Diff::check_comparable() const {
  require_digests(name_a_, a_);
  require_digests(name_b_, b_);
  if (a_.world() != b_.world())
    throw UserError(name_a_ + " was run on " + counted(a_.world(), "rank") + ", " + name_b_ + " on " +
                    std::to_string(b_.world()) + ": the number of ranks must be equal");
}

Range Diff::steps(RankRecord RankResult::*run) const {
  Range all;
  for (const RankResult& rank : results_) all.add((rank.*run).steps);
  return all;
}

int64_t Diff::digests() const {
  int64_t all = 0;
  for (const RankResult& rank : results_) all += rank.digests;
  return all;
}

// Counts the steps compared on all ranks.
std::string Diff::equal_text() const {
  int64_t steps = std::numeric_limits<int64_t>::max();
  for (const RankResult& rank : results_) steps = std::min(steps, rank.steps);
  const bool same_steps = this->steps(&RankResult::a) == this->steps(&RankResult::b);
  return "equal: " + counted(steps, "step") + ", " + counted(digests(), "digest") + " of " +
         counted(a_.world(), "rank") + (same_steps ? "" : "; " + ranges());
}

// A line for each rank with an incomplete journal. Ranks step together: if one ended regularly, the others
// are at most one step behind, even if killed.
std::string Diff::truncation_text(const std::string& name, RankRecord RankResult::*run) const {
  const int64_t last = steps(run).last;
  const bool one_ended = std::any_of(results_.begin(), results_.end(),
                                     [&](const RankResult& rank) { return (rank.*run).ended; });
  std::string text;
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const RankRecord& record = results_[r].*run;
    if (record.damage.empty() && (!one_ended || last - record.steps.last <= 1)) continue;
    const std::string prefix = "\nrank " + std::to_string(r) + " of " + name;
    text += record.steps.last == 0 ? prefix + " has no step"
                                   : prefix + " ends at step " + std::to_string(record.steps.last);
    if (!record.damage.empty()) text += " (" + record.damage + ")";
    if (record.steps.last < last) text += ", the run at step " + std::to_string(last);
  }
  return text;
}

std::string label(const std::string& run_dir, int64_t start) {
  return start == 0 ? run_dir : run_dir + " (attempt " + std::to_string(start) + ")";
}

}  // namespace

RunDiff diff_runs(const std::string& run_a, const std::string& run_b, int64_t start_a, int64_t start_b) {
  RecordedRun a = recorded_run(run_a, start_a);
  RecordedRun b = recorded_run(run_b, start_b);
  RunDiff result = Diff(label(run_a, start_a), std::move(a), label(run_b, start_b), std::move(b)).run();
  std::set<std::string> newest;
  if (start_a == 0) newest.insert(run_a);
  if (start_b == 0) newest.insert(run_b);
  for (const std::string& run : newest) result.text += ignored_attempts(run);
  return result;
}

}  // namespace tutti
