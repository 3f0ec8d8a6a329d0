#pragma once

#include <string>
#include <vector>

namespace tutti {

// Runs as columns: states, steps, times, rates, last and best metrics, with "*" at the best of all, and the
// keys in which their recipes differ. `width`: characters of a line, 0 = any. Throws UserError for a folder
// that is no run's or cannot be read.
std::string comparison_text(const std::vector<std::string>& run_dirs, int width);

}  // namespace tutti
