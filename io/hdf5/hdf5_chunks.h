#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/hdf5/hdf5.h"
#include "io/hdf5/hdf5_handle.h"

// For the sources in io/hdf5 only.
namespace tutti {

// How the dataset of this shape lies in the file. `item`: bytes of a number; `same_bytes`: they are the same
// in file and memory.
Hdf5Storage storage_of(hid_t dataset, const Shape& shape, size_t item, bool same_bytes);

// A chunk as it lies in the file.
struct EncodedChunk {
  Shape offset;  // of its first element in the dataset
  std::vector<std::byte> bytes;
};

// Reads the chunks that rows [first, first + count) lie in. Empty if libhdf5 has to read these rows: a chunk
// is missing or was written without some filters. Needs a Hdf5Session.
std::vector<EncodedChunk> read_encoded(hid_t dataset, const Hdf5Entry& entry, int64_t first, int64_t count);

// Decodes a chunk and copies its part of rows [first, first + count) to its place in `rows`. Needs no
// session. False if its bytes are damaged.
bool decode_chunk(const Hdf5Entry& entry, const EncodedChunk& chunk, int64_t first, int64_t count,
                  std::byte* rows);

}  // namespace tutti
