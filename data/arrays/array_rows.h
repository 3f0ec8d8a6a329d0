#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/mapped_file.h"

namespace tutti {

// The source of an array's rows. Thread-safe.
class ArrayRows {
 public:
  virtual ~ArrayRows() = default;
  // Copies rows to `to`, in the order given, as in memory. Throws UserError with file, array and row.
  virtual void gather(std::span<const int64_t> rows, std::byte* to) const = 0;
};
using ArrayRowsPtr = std::unique_ptr<const ArrayRows>;

// Rows that lie one behind the other, as in memory. `owner` keeps them.
ArrayRowsPtr contiguous_rows(std::shared_ptr<const void> owner, std::span<const std::byte> all, int64_t rows);

}  // namespace tutti
