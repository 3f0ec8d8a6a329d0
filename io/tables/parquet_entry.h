#pragma once

#include "io/tables/table_file.h"

// Exported by libtutti_parquet.so. Throws std::runtime_error; the file's owner calls delete.
extern "C" tutti::TableFile* tutti_open_parquet(const char* path);
