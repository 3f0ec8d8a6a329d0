#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/disk.h"
#include "tensors/param_view.h"

namespace tutti {

using Hdf5Attribute = std::variant<int64_t, double, std::string>;
using Hdf5Attributes = std::map<std::string, Hdf5Attribute>;

// A contiguous dataset to write. The path may have groups ("train/input").
struct Hdf5Array {
  std::string path;
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  at::Tensor tensor;  // on the CPU, contiguous, of this shape and dtype
  Hdf5Attributes attributes = {};
};
Hdf5Array hdf5_array(std::string path, const at::Tensor& tensor, Hdf5Attributes attributes = {});

struct Hdf5Written {
  uint64_t bytes = 0;             // size of the file
  uint64_t hash = 0;              // XXH3 of the file
  std::vector<uint64_t> offsets;  // of each array's data; 0 for an array without elements
};

class Hdf5Memory;

// A cached layout. If the next file has the same declarations, libhdf5 is not called again, which saves time
// in checkpoints with hundreds of tensors.
struct Hdf5Layout {
  std::string declared;  // all names, shapes, dtypes and attributes of the file
  std::shared_ptr<const Hdf5Memory> memory;
  std::vector<uint64_t> offsets;
};

// Writes and hashes the file front to back, then syncs the file. The same arrays give the same bytes. `last`:
// the cached layout, updated; may be null. Throws OperatingError (disk full, ...).
Hdf5Written write_hdf5(Disk& disk, const std::string& path, const std::vector<Hdf5Array>& arrays,
                       Hdf5Layout* last = nullptr);

// A virtual dataset: maps pieces of datasets in other files of the same folder. Has at least one dimension.
struct Hdf5VirtualArray {
  struct Source {
    std::string file;  // "rank-0.h5"
    Shape offset;      // of the piece in this array
    Shape extent;      // of the piece, which is the whole dataset in the other file
  };
  std::string path;  // the same in all files
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  std::vector<Source> sources;  // empty pieces are skipped
};
using Hdf5Links = std::map<std::string, std::string>;  // path of a soft link -> target

// A file of virtual datasets, and of scalars, since a virtual dataset cannot be a scalar. Rows without a
// source, or with a missing source file, read as NaN, or as 0 for dtypes without NaN.
struct Hdf5View {
  std::vector<Hdf5VirtualArray> arrays;
  std::vector<Hdf5Array> scalars;
  Hdf5Links links;
};
Hdf5Written write_hdf5_view(Disk& disk, const std::string& path, const Hdf5View& view,
                            Hdf5Layout* last = nullptr);

}  // namespace tutti
