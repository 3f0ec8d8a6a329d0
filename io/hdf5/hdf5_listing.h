#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_storage.h"

namespace tutti {

// A dataset of an HDF5 file, as seen without libtorch.
struct ListedArray {
  enum class Numbers { kIntegers, kFloats, kBooleans, kOther };
  static constexpr const char* kUnreadable = "unreadable";  // by this libhdf5, or a broken link
  static constexpr const char* kUnnamable = "not listed for the characters of its name";
  std::string path;   // "train/images"; of a name with control characters, or not of UTF-8, as shown
  std::string dtype;  // "uint8", "float32", "bool"; "text", the two above and other types have no numbers
  Numbers numbers = Numbers::kOther;
  std::vector<int64_t> shape;
  int64_t num_classes = 0;  // the attribute of that name; 0 = none

  int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  int64_t row_size() const;         // numbers in a row
  std::string description() const;  // "uint8 [60000, 28, 28]"
};

// True if the file begins as HDF5 files do.
bool is_hdf5(const std::string& path);

// All datasets by name, with those behind soft links. Throws UserError if the file cannot be read.
std::vector<ListedArray> list_hdf5(const std::string& path);

// The first rows of an array of numbers, flattened. Throws UserError if reading fails, or if the array claims
// to be larger than its file can hold.
std::vector<double> first_rows(const std::string& path, const ListedArray& array, int64_t rows);

// The release of the loaded libhdf5: "1.10.8".
std::string hdf5_version();

}  // namespace tutti
