#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/options.h"
#include "data/transforms/ignore_index.h"
#include "runtime/error.h"

namespace tutti {

// The file lacks a group or array that an option names. `option` is "group" or "arrays"; `array`: the missing
// one's name in batches.
class MissingArrays final : public UserError {
 public:
  MissingArrays(std::string option, const std::string& path, const std::string& message,
                std::string array = "")
      : UserError({path}, message), option(std::move(option)), array(std::move(array)) {}
  std::string option;
  std::string array;
};

// Arrays of an HDF5 file; row i of each is sample i. Contiguous arrays are read from the mapped file. Others,
// in chunks, are decoded on the reading thread; as many as fit in `cache_bytes` are kept in memory. Floats
// are read as float32, integers as int64; uint8 stays uint8, but for the target.
class Hdf5Dataset final : public Dataset {
 public:
  struct Options {
    std::string path;
    std::string group = "/";
    std::vector<std::string> arrays = {};  // empty: all arrays of the group
    // Names in the file of arrays that batches have by another name; from "/" on, or within the group.
    std::map<std::string, std::string> stored_as = {};
    // Of "target"; 0: its attribute num_classes, else 1 + the largest of "target" and "input" (tokens).
    int64_t num_classes = 0;
    int64_t ignore_index = kIgnoredTarget;  // a legal target, whatever num_classes is; kIgnoredTarget is, too
    size_t cache_bytes = size_t{1} << 30;
  };

  // Checks all labels (integer "target") and tokens (integer "input") if there are at most kMaxCheckedLabels:
  // throws UserError "labels out of range" with file, array, row, value and number of classes.
  explicit Hdf5Dataset(Options options);
  ~Hdf5Dataset() override;

  static constexpr int64_t kMaxCheckedLabels = int64_t{16} << 20;

  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return spec_; }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  void scan() const override;  // checks labels, and that floats are finite
  uint64_t digest() const override;
  std::string advice() const override { return advice_; }

 private:
  class Array;
  class Cache;
  void open_arrays(const Options& options);
  std::vector<const Array*> class_arrays() const;
  void find_classes(const Options& options);

  std::vector<std::unique_ptr<const Array>> arrays_;
  int64_t size_ = 0;
  int64_t ignore_index_;
  std::string advice_;
  SampleSpec spec_;
};

}  // namespace tutti
