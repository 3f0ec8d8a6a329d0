#pragma once

#include <string>
#include <vector>

#include "io/tables/table_file.h"

namespace tutti {

// The columns of texts with the path of an existing picture, below `root` or absolute, in one of the first
// rows. Throws as TableFile::read.
std::vector<std::string> picture_columns(TableFile& file, const std::string& root);

// The folder that a table lies in, where its paths begin by default.
std::string folder_of_table(const std::string& path);

}  // namespace tutti
