#pragma once

#include <ATen/core/Tensor.h>
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensors/param_view.h"

namespace tutti {

// The storage of a dataset in a test's file.
struct ChunkedOptions {
  Shape chunk;
  bool gzip = false;
  bool shuffle = false;
  bool checksum = false;
  bool may_grow = false;      // chunks may then be larger than the dataset
  bool big_endian = false;    // of float32
  int64_t rows_written = -1;  // the others' chunks do not exist; -1 = all
  int fill = 0;               // the value of chunks that do not exist
  Shape claimed = {};         // the dataset's shape; empty: that of the values
};

// Writes a file with one dataset. `values`: uint8, float32 or int32.
void write_chunked(const std::string& path, const std::string& dataset, const at::Tensor& values,
                   const ChunkedOptions& options);

// Writes the chunk that begins at row `row` as these bytes, as if filters had made them.
void write_encoded(const std::string& path, const std::string& dataset, int64_t row,
                   const std::string& bytes);

// Changes the size of a chunk in the index (B-tree) of the only dataset in chunks.
void set_chunk_size(const std::string& path, std::size_t chunk, uint32_t bytes);

// Overwrites the bytes of the chunk of row `row` in the file by zeros.
void damage_chunk(const std::string& path, const std::string& dataset, int64_t row);

}  // namespace tutti
