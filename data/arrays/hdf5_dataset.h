#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "runtime/error.h"

namespace tutti {

// Arrays of an HDF5 file. Contiguous arrays are read from the mapped file. Arrays in chunks are decoded on
// the reading thread; up to `cache_bytes` of chunks are kept in memory.
class Hdf5Dataset final : public ArrayDataset {
 public:
  struct Options {
    std::string path;
    std::string group = "/";
    std::vector<std::string> arrays = {};  // empty: all arrays of the group
    // Names in the file of arrays that batches have by another name; from "/" on, or within the group.
    std::map<std::string, std::string> stored_as = {};
    int64_t num_classes = 0;  // as in ArrayDataset; "target" may have an attribute num_classes
    int64_t ignore_index = kIgnoredTarget;
    bool keeps_float64 = false;  // as in ArrayDataset
    size_t cache_bytes = size_t{1} << 30;
  };

  // Throws UserError, WrongKey, and as ArrayDataset.
  explicit Hdf5Dataset(const Options& options);

 private:
  struct Opened;
  explicit Hdf5Dataset(Opened opened);
};

}  // namespace tutti
