#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct RunDiff {
  bool same = true;  // and no rank's record is damaged, or ends before those of the other ranks of its run
  // Lines: the recipes' difference, if there is one; "equal: ..." or "first difference: ..."; where equal,
  // each rank whose record is not whole.
  std::string text;
};

// Compares the digests of recorded starts of two runs (as recorded_start counts), step by step, as far as
// both have them: a resumed run with a whole one too. Throws UserError where they cannot be compared.
RunDiff diff_runs(const std::string& run_a, const std::string& run_b, int64_t start_a = 0,
                  int64_t start_b = 0);

}  // namespace tutti
