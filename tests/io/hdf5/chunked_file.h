#pragma once

#include <ATen/core/Tensor.h>
#include <hdf5.h>

#include <string>

#include "tensors/param_view.h"

namespace tutti {

// How a dataset of a test's file is stored.
struct ChunkedOptions {
  Shape chunk;
  bool gzip = false;
  bool shuffle = false;
  bool checksum = false;
  bool may_grow = false;      // chunks may then be larger than the dataset
  int64_t rows_written = -1;  // the others' chunks do not exist; -1 = all
};

// Writes a file with one dataset. `values`: uint8, float32 or int32.
void write_chunked(const std::string& path, const std::string& dataset, const at::Tensor& values,
                   const ChunkedOptions& options);

// Overwrites the bytes of the chunk of row `row` in the file by zeros.
void damage_chunk(const std::string& path, const std::string& dataset, int64_t row);

}  // namespace tutti
