#pragma once

#include <string>

namespace tutti {

struct RunDiff {
  bool same = true;
  std::string
      text;  // lines: the recipes' difference, if there is one; "equal: ..." or "first difference: ..."
};

// Compares the digests of the newest recorded starts of two runs, step by step, as far as both have them: a
// resumed run with a whole one too. Throws UserError where they cannot be compared.
RunDiff diff_runs(const std::string& run_a, const std::string& run_b);

}  // namespace tutti
