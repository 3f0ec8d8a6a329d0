#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// How rows of tables are samples. In an evaluation as in training.
struct SeriesOptions {
  int64_t window = 0;                   // rows of "input", consecutive in a series; 0: each row is a sample
  int64_t horizon = 1, stride = 1;      // rows from the last of a window to its target; between windows
  std::string series = "", order = "";  // columns; "": each file is a series, in the order of its rows

  friend bool operator==(const SeriesOptions&, const SeriesOptions&) = default;
};

// The meaning of a table's targets: by their look, classes, or numbers. Free of libtorch.
enum class TableTarget { kAuto, kClass, kNumber };

}  // namespace tutti
