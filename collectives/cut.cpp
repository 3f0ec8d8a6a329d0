#include "collectives/cut.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {

Cut::Cut(const std::vector<std::vector<ElementRange>>& parts) : first_run_{0}, begins_{0} {
  std::vector<int64_t> described;
  for (const auto& ranges : parts) {
    begins_.push_back(begins_.back());
    for (const ElementRange& range : ranges) append(range);
    for (std::size_t i = first_run_.back(); i < runs_.size(); ++i)
      described.insert(described.end(), {runs_[i].whole, runs_[i].count});
    described.push_back(-1);
    first_run_.push_back(runs_.size());
  }
  check_disjoint();
  hash_ = XXH3_64bits(described.data(), described.size() * sizeof(int64_t));
}

CutPtr Cut::even(int ranks, int64_t part_size) {
  std::vector<std::vector<ElementRange>> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) parts.push_back({{rank * part_size, (rank + 1) * part_size}});
  return std::make_shared<const Cut>(parts);
}

// Lengthens the last run if the range continues it.
void Cut::append(const ElementRange& range) {
  TUTTI_ASSERT(range.begin >= 0 && range.begin <= range.end,
               "no range: [" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")");
  const int64_t count = range.end - range.begin;
  const bool is_first = runs_.size() == first_run_.back();
  if (count == 0) return;
  if (!is_first && runs_.back().whole + runs_.back().count == range.begin)
    runs_.back().count += count;
  else
    runs_.push_back({range.begin, begins_.back() - begins_[begins_.size() - 2], count});
  begins_.back() += count;
  extent_ = std::max(extent_, range.end);
}

void Cut::check_disjoint() const {
  std::vector<CutRun> sorted = runs_;
  std::ranges::sort(sorted, {}, &CutRun::whole);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    TUTTI_ASSERT(sorted[i - 1].whole + sorted[i - 1].count <= sorted[i].whole,
                 "a cut gives element " + std::to_string(sorted[i].whole) + " away twice");
  }
}

int64_t Cut::largest_part() const {
  int64_t largest = 0;
  for (int rank = 0; rank < ranks(); ++rank) largest = std::max(largest, part_size(rank));
  return largest;
}

bool Cut::is_packed() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto own = runs(rank);
    if (own.size() > 1 || (own.size() == 1 && own.front().whole != begins_[rank])) return false;
  }
  return true;
}

bool Cut::is_even() const { return is_packed() && largest_part() * ranks() == size(); }

std::span<const CutRun> Cut::runs(int rank) const {
  return std::span(runs_).subspan(first_run_[rank], first_run_[rank + 1] - first_run_[rank]);
}

std::vector<CutRun> Cut::runs(int rank, int64_t first, int64_t count) const {
  const auto all = runs(rank);
  const int64_t end = first + count;
  std::vector<CutRun> parts;
  auto run = std::ranges::upper_bound(all, first, {}, &CutRun::part);
  if (run != all.begin()) --run;
  for (; run != all.end() && run->part < end; ++run) {
    const int64_t begin = std::max(run->part, first);
    const int64_t until = std::min(run->part + run->count, end);
    if (begin < until) parts.push_back({run->whole + begin - run->part, begin - first, until - begin});
  }
  return parts;
}

}  // namespace tutti
