#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/arrays/array_dataset.h"
#include "io/hdf5/hdf5.h"

namespace tutti {

// Bytes of all rows.
size_t all_bytes(const Hdf5Entry& entry);
// Rows that libhdf5 decodes to read one.
int64_t rows_of_chunk(const Hdf5Entry& entry);

// Rows that are kept once read, in all_bytes() of memory. Each chunk is decoded once, by the first thread
// that needs a row of the chunk.
ArrayRowsPtr kept_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry);

// Keeps the chunks that were read last, in `most_bytes` of memory, or one larger chunk. A chunk is decoded
// once in a call.
ArrayRowsPtr recent_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry, size_t most_bytes);

}  // namespace tutti
