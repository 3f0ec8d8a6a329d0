#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_writer.h"
#include "tensors/param_view.h"

namespace tutti {

// A dataset of an HDF5 file. Datasets that hold no numbers (text, compounds) are not listed.
struct Hdf5Entry {
  std::string path;  // "train/input"
  Shape shape;
  at::ScalarType dtype = at::kFloat;  // that it is read as
  // Where its bytes begin in the file, when they lie there in one piece, in C order, as they are in memory.
  std::optional<uint64_t> file_offset;
  Hdf5Attributes attributes;  // integers, numbers and texts; others are left out
};

// An HDF5 file, open for reading. Thread-safe: calls into libhdf5 wait for each other, over all files of the
// process. Every call throws UserError that names the file, and the dataset where there is one.
class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Hdf5Entry>& datasets() const { return datasets_; }  // by name; not through soft links
  std::string names() const;                                            // of the first few, for messages
  const Hdf5Entry* find(const std::string& dataset) const;
  const Hdf5Entry& at(const std::string& dataset) const;  // the error names what there is

  at::Tensor read(const std::string& dataset) const;
  // Rows of dim 0 in the order given, [rows.size(), ...]; duplicates are allowed.
  at::Tensor read_rows(const std::string& dataset, std::span<const int64_t> rows) const;
  at::Tensor read_range(const std::string& dataset, int64_t first, int64_t count) const;

 private:
  struct Opened;
  std::string path_;
  std::unique_ptr<Opened> opened_;
  std::vector<Hdf5Entry> datasets_;
};

}  // namespace tutti
