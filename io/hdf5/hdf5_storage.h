#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// Checkpoints have soft links as further names of their own datasets, which need not be read twice. Links to
// other files are followed where soft links are.
enum class SoftLinks { kIgnored, kFollowed };

// The layout of a dataset in its file.
struct Hdf5Storage {
  std::vector<int64_t> chunk = {};        // empty: not in chunks
  std::vector<std::string> filters = {};  // of chunks, in the order applied: "shuffle", "gzip"
  std::string missing_filter = {};        // one that this libhdf5 cannot undo; "" = none
  bool decodable = false;                 // chunks, of filters that are undone without libhdf5's lock
  std::size_t item = 1;                   // bytes of a number
};

}  // namespace tutti
