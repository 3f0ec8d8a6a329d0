#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/hdf5/hdf5.h"
#include "io/mapped_file.h"

namespace tutti {

// The source of an array's rows. Thread-safe.
class Hdf5Rows {
 public:
  virtual ~Hdf5Rows() = default;
  // Copies rows to `to`, in the order given, as in memory. Throws UserError with file, array and row.
  virtual void gather(std::span<const int64_t> rows, std::byte* to) const = 0;
};
using Hdf5RowsPtr = std::unique_ptr<const Hdf5Rows>;

// Bytes of a row, and of all rows.
size_t row_bytes(const Hdf5Entry& entry);
size_t all_bytes(const Hdf5Entry& entry);
// Rows that libhdf5 decodes to read one.
int64_t rows_of_chunk(const Hdf5Entry& entry);

// Rows of an array that lies in the file as in memory.
Hdf5RowsPtr mapped_rows(std::shared_ptr<const MappedFile> map, const Hdf5Entry& entry);

// Rows that are kept once they are read, in all_bytes() of memory. Each chunk is decoded once, by the first
// thread that needs one of its rows.
Hdf5RowsPtr kept_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry);

// Keeps the chunks that were read last, in `most_bytes` of memory, or one chunk if it is larger. A chunk is
// decoded once in a call.
Hdf5RowsPtr recent_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry, size_t most_bytes);

}  // namespace tutti
