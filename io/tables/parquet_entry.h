#pragma once

#include "io/tables/table_file.h"
#include "io/tables/table_writer.h"

// Exported by libtutti_parquet.so. Throw std::runtime_error, also later; the object's owner calls delete.
extern "C" tutti::TableFile* tutti_open_parquet(const char* path);
extern "C" tutti::TableWriter* tutti_write_parquet(const char* path);
