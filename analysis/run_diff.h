#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct RunDiff {
  bool same = true;  // False also if the journal of a rank is damaged or ends early
  // Lines: the recipes' difference, if any; "equal: ..." or "first difference: ..."; if equal, a line for
  // each rank with an incomplete journal; then a line for later, ignored attempts.
  std::string text;
};

// Compares the digests of recorded attempts of two runs (numbered as in recorded_start) step by step, where
// both runs have digests: a resumed run can be compared with an uninterrupted run. Throws UserError if the
// runs cannot be compared.
RunDiff diff_runs(const std::string& run_a, const std::string& run_b, int64_t start_a = 0,
                  int64_t start_b = 0);

}  // namespace tutti
