#pragma once

#include <cstdint>

#include "data/tables/table_columns.h"
#include "recipe/setting.h"

namespace tutti {

// True for the kinds csv, parquet and text_table.
bool is_table(const Setting& section);

// The files of a section of such a kind, and what it says of targets. Throws UserError with the section's
// key.
struct OpenTable {
  TableFiles files;
  TableTargets targets;
};
OpenTable open_table(const Setting& section, int64_t ignore_index);

}  // namespace tutti
