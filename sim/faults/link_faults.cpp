#include "sim/faults/link_faults.h"

#include <algorithm>

namespace tutti {
namespace {

// A rank other than this.
int other_rank(int rank, int ranks, const RandomKey& draw) {
  return (rank + 1 + static_cast<int>(draw.below(static_cast<uint64_t>(ranks - 1)))) % ranks;
}

// Holds of several ranks begin in the first half of the time and end in the second, so there is a moment at
// which all are held; the orders of begins and ends are drawn. FoundationDB calls this swizzling.
void clog(SimLinks& links, const FaultRule& rule, int rank, int ranks, TimePoint now, const RandomKey& draw) {
  const Permutation others(static_cast<uint64_t>(ranks - 1), draw);
  for (int i = 0; i < std::min<int64_t>(rule.count, ranks); ++i) {
    const int held =
        i == 0 ? rank : (rank + 1 + static_cast<int>(others(static_cast<uint64_t>(i - 1)))) % ranks;
    const RandomKey own = draw.fold_in(static_cast<uint64_t>(i));
    SimLinks::Hold hold{.begin = now + rule.duration(i == 0 ? 0 : own.uniform(0) / 2),
                        .end = now + rule.duration((1 + own.uniform(1)) / 2),
                        .label = rule.label};
    const uint64_t side = own.below(3, 2);  // the rank's sending links, its receiving links, or all
    if (side != 1) hold.from = held, hold.to = SimLinks::kAnyRank, links.hold(hold);
    if (side != 0) hold.from = SimLinks::kAnyRank, hold.to = held, links.hold(hold);
  }
}

}  // namespace

void begin_link_fault(SimLinks& links, const FaultRule& rule, int rank, int ranks, TimePoint now,
                      const RandomKey& draw) {
  if (rule.kind == FaultKind::kClog) return clog(links, rule, rank, ranks, now, draw);
  const int to = rule.to ? *rule.to : other_rank(rank, ranks, draw);
  if (rule.kind == FaultKind::kSlowLink)
    return links.slow({rank, to, rule.duration(), rule.count, rule.label});
  links.hold({rank, to, now, rule.endless() ? kNever : now + rule.duration(), rule.label});
}

}  // namespace tutti
