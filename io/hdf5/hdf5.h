#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_listing.h"
#include "io/hdf5/hdf5_writer.h"
#include "tensors/param_view.h"

namespace tutti {

// A numeric dataset of an HDF5 file. An enumeration is its integers, with the attributes num_classes and
// class_names. Other datasets (text, compounds) are not listed, nor are datasets with names that are not
// UTF-8 or have control characters.
struct Hdf5Entry {
  std::string path;  // "train/input"
  Shape shape;
  at::ScalarType dtype = at::kFloat;  // as read
  // Offset of the data in the file, if stored contiguously and with the same bytes as in memory.
  std::optional<uint64_t> file_offset;
  Hdf5Attributes attributes;  // integers, numbers and texts only
  Hdf5Storage storage = {};
  bool same_bytes = true;  // numbers in the file are as in memory: no other byte order, for example
};

// An HDF5 file, open for reading. Thread-safe: a lock serialises all calls to libhdf5 in the process. Every
// call throws UserError with the file and the dataset.
class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path, SoftLinks links = SoftLinks::kIgnored);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Hdf5Entry>& datasets() const { return datasets_; }  // by name
  std::string names() const;                                            // the first few, for messages
  const Hdf5Entry* find(const std::string& dataset) const;
  const Hdf5Entry& at(const std::string& dataset) const;  // the error lists the existing datasets

  // Throws if the file is too small for the dataset's claimed size, or a virtual dataset lacks a source.
  // Checked before a dataset is first read, too.
  void require_sound(const std::string& dataset) const;

  // Names of datasets of the file that are not listed, printable.
  const std::vector<std::string>& others() const { return others_; }
  // The reason why a dataset of the file is not listed: "is text [130], ..."; "" if there is no such dataset.
  std::string why_not_listed(const std::string& dataset) const;

  at::Tensor read(const std::string& dataset) const;
  // Reads rows of dim 0 in the order given: [rows.size(), ...]. Duplicates are allowed.
  at::Tensor read_rows(const std::string& dataset, std::span<const int64_t> rows) const;
  at::Tensor read_range(const std::string& dataset, int64_t first, int64_t count) const;
  // Reads rows [first, first + count) to `to`, as in memory. Chunks are decoded on the calling thread, beside
  // other threads, each of its chunks once.
  void read_rows_into(const std::string& dataset, int64_t first, int64_t count, std::byte* to) const;

 private:
  struct Opened;
  void decode_rows(const Hdf5Entry& entry, int64_t first, int64_t count, std::byte* to) const;
  void convert(const Hdf5Entry& entry, size_t numbers, std::byte* to) const;
  std::string path_;
  std::unique_ptr<Opened> opened_;
  std::vector<Hdf5Entry> datasets_;
  std::vector<std::string> others_;
};

}  // namespace tutti
