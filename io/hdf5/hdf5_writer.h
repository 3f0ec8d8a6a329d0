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

// A dataset to write: contiguous, in the groups that its path names ("train/input").
struct Hdf5Array {
  std::string path;
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  at::Tensor tensor;  // on the CPU, contiguous, of that shape and dtype
  Hdf5Attributes attributes = {};
};
Hdf5Array hdf5_array(std::string path, const at::Tensor& tensor, Hdf5Attributes attributes = {});

struct Hdf5Written {
  uint64_t bytes = 0;             // of the file
  uint64_t hash = 0;              // XXH3 of the file
  std::vector<uint64_t> offsets;  // where each array's data begins; 0 for an array without elements
};

class Hdf5Memory;

// What libhdf5 made of the last file that was written with it. The next one, where it declares the same,
// takes its data and nothing more: checkpoints follow each other, of hundreds of tensors.
struct Hdf5Layout {
  std::string declared;  // all that the file's own bytes depend on
  std::shared_ptr<const Hdf5Memory> memory;
  std::vector<uint64_t> offsets;
};

// Writes the file front to back through `disk`, hashing as it goes, and syncs it. The same arrays give the
// same bytes. `last` may be null. Throws OperatingError (disk full, ...).
Hdf5Written write_hdf5(Disk& disk, const std::string& path, const std::vector<Hdf5Array>& arrays,
                       Hdf5Layout* last = nullptr);

// A dataset without data of its own, which shows pieces of datasets in other files of the same folder. It has
// at least one dimension.
struct Hdf5VirtualArray {
  struct Source {
    std::string file;  // "rank-0.h5"
    Shape offset;      // of the piece in this array
    Shape extent;      // of the piece, and of the whole dataset in the other file
  };
  std::string path;  // here and in the other files
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  std::vector<Source> sources;  // those without elements are left out
};
using Hdf5Links = std::map<std::string, std::string>;  // path of a soft link -> path that it stands for

// A file of virtual arrays, and of scalars, which libhdf5 cannot show from other files. Rows that no source
// has, or whose file is missing, read as NaN, or as 0 where there is no NaN.
struct Hdf5View {
  std::vector<Hdf5VirtualArray> arrays;
  std::vector<Hdf5Array> scalars;
  Hdf5Links links;
};
Hdf5Written write_hdf5_view(Disk& disk, const std::string& path, const Hdf5View& view,
                            Hdf5Layout* last = nullptr);

}  // namespace tutti
