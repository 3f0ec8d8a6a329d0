#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/options.h"
#include "data/tables/table_columns.h"
#include "recipe/setting.h"

namespace tutti {

// Files, each by its ending: Parquet, JSON lines, else a table in text. Throws UserError.
TableFiles open_table_files(const std::vector<std::string>& paths, const TextFileOptions& text);
// Throws UserError unless the section's delimiter can stand between cells.
void require_delimiter(const std::string& text, const Setting& section);

TableTargets targets_of(const TargetOptions& options, int64_t ignore_index);

// The targets of a training table of texts or images, which `fitted` has; nullopt if there are none. Throws
// UserError with the section's key if the training's is another table.
std::optional<FittedTable> fitted_targets(const TargetOptions& options, const Setting& section,
                                          const std::optional<std::string>& fitted);
// Throws UserError unless the names of classes have numbers of the training, or those of `classes`.
void require_numbered(const Dataset& data, const TargetOptions& options, const Setting& section);

// True for the kinds csv, parquet, text_table and image_table.
bool is_table(const Setting& section);

// The files of a section of such a kind, and what it says of targets. Throws UserError with the section's
// key.
struct OpenTable {
  TableFiles files;
  TableTargets targets;
  SeriesOptions series = {};
};
OpenTable open_table(const Setting& section, int64_t ignore_index);

}  // namespace tutti
