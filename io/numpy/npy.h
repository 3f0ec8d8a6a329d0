#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/formats/zip_file.h"

namespace tutti {

// The header of an array that numpy saved: numpy.lib.format, versions 1 to 3.
struct NpyHeader {
  std::string type;  // numpy's: "<f4", "|u1"
  std::vector<int64_t> shape;
  size_t item_bytes = 0;
  size_t at = 0;  // the byte where the numbers begin

  size_t bytes() const;  // of all numbers; at most the largest size_t
};

bool is_npy(std::span<const std::byte> file);

// Reads the header of `file`, which `name` names in errors. Throws UserError if the header is damaged, if
// numbers are big-endian or are no numbers, if the array is column-major, or if the file is shorter than the
// header says.
NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& name);

// The same of a member of an archive, of which no more is inflated. Throws UserError, too, if the member is
// much longer than its array.
NpyHeader read_npy_header(const ZipFile& archive, const ZipFile::Member& member, const std::string& name);

}  // namespace tutti
