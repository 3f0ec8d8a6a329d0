#pragma once

#include <memory>
#include <string>

#include "io/tables/table_file.h"

namespace tutti {

// A Parquet file, read by libtutti_parquet.so, which is loaded now. Throws UserError, also of read.
std::unique_ptr<TableFile> open_parquet(const std::string& path);

}  // namespace tutti
