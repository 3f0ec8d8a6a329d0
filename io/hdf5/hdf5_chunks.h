#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_storage.h"

// For the sources in io/hdf5 only. Without libtorch.
namespace tutti {

// The layout of a dataset of numbers in its file. `item`: bytes of a number.
Hdf5Storage storage_of(hid_t dataset, const std::vector<int64_t>& shape, std::size_t item);

// Bytes of an array, or of a chunk; the largest number if there are more: headers may claim any size.
uint64_t bytes_of(const std::vector<int64_t>& shape, std::size_t item);

// Most bytes that filters which are undone here may make of a chunk of this size.
uint64_t most_stored(uint64_t chunk_bytes);

// A decodable dataset.
struct ChunkedArray {
  const std::vector<int64_t>& shape;
  const Hdf5Storage& storage;
};

// A chunk as it lies in the file.
struct EncodedChunk {
  std::vector<int64_t> offset;  // of its first element in the dataset
  std::vector<std::byte> bytes;
  uint32_t skipped = 0;     // a bit for each filter that was not applied
  bool is_damaged = false;  // not read: libhdf5 fails, or the bytes are more than filters can have made
};

// Reads the chunks that rows [first, first + count) lie in. Needs a Hdf5Session.
std::vector<EncodedChunk> read_encoded(hid_t dataset, const ChunkedArray& array, int64_t first,
                                       int64_t count);

// Decodes a chunk and copies its part of rows [first, first + count) to its place in `rows`, as numbers of
// the file's type. Needs no session. False if its bytes are damaged.
bool decode_chunk(const ChunkedArray& array, const EncodedChunk& chunk, int64_t first, int64_t count,
                  std::byte* rows);

}  // namespace tutti
