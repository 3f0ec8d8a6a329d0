#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// A dataset of an HDF5 file, as seen without libtorch.
struct ListedArray {
  enum class Numbers { kIntegers, kFloats, kBooleans, kOther };
  static constexpr const char* kUnreadable = "unreadable";  // by this libhdf5, or a link to nothing
  std::string path;                                         // "train/images"
  std::string dtype;  // "uint8", "float32", "bool"; "text", kUnreadable and others have no numbers
  Numbers numbers = Numbers::kOther;
  std::vector<int64_t> shape;
  int64_t num_classes = 0;  // the attribute of that name; 0 = none

  int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  int64_t row_size() const;         // numbers in a row
  std::string description() const;  // "uint8 [60000, 28, 28]"
};

// True if the file begins as HDF5 files do.
bool is_hdf5(const std::string& path);

// All datasets by name, without those behind soft links. Throws UserError if the file cannot be read.
std::vector<ListedArray> list_hdf5(const std::string& path);

// The first rows of an array of numbers, flattened. Throws UserError if they cannot be read.
std::vector<double> first_rows(const std::string& path, const ListedArray& array, int64_t rows);

// The release of the loaded libhdf5: "1.10.8".
std::string hdf5_version();

}  // namespace tutti
