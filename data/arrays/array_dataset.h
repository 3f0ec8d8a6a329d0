#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/arrays/array_rows.h"
#include "data/dataset.h"
#include "data/transforms/ignore_index.h"
#include "runtime/error.h"

namespace tutti {

// An array of a file, whose first dimension is the samples.
struct StoredArray {
  std::string name;   // in batches
  std::string file;   // for errors, as `where`
  std::string where;  // in the file: "array 'train/images'", "column 'price'"
  at::ScalarType dtype = at::kFloat;
  Shape shape;              // at least one dimension, and no empty rows
  ArrayRowsPtr rows = {};   // of this dtype
  int64_t num_classes = 0;  // that the file declares; 0: none
};

// Arrays side by side: row i of each is sample i. Floats are read as float32 (see keeps_float64), integers as
// int64; uint8 and bool stay, but for the target.
class ArrayDataset : public Dataset {
 public:
  struct Options {
    // Of "target"; 0: the number that its array declares, else 1 + the largest of "target" and "input"
    // (tokens).
    int64_t num_classes = 0;
    int64_t ignore_index = kIgnoredTarget;  // a legal target for any num_classes; so is kIgnoredTarget
    bool keeps_float64 = false;             // in "input", for transforms that make float32
    std::string advice = {};
  };

  // Checks all labels (integer "target") and tokens (integer "input") if there are at most kMaxCheckedLabels:
  // throws UserError "labels out of range" with file, array, row, value and number of classes; also if arrays
  // differ in length, or have no rows.
  ArrayDataset(std::vector<StoredArray> arrays, const Options& options);
  ~ArrayDataset() override;

  static constexpr int64_t kMaxCheckedLabels = int64_t{16} << 20;

  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return spec_; }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  void scan() const override;  // checks labels, and that floats are finite
  uint64_t digest() const override;
  std::string advice() const override { return options_.advice; }
  LabelRange labels() const override { return labels_; }

  // "target" of all samples, without reading other arrays; undefined if there is none, or more than
  // kMaxCheckedLabels numbers of it.
  at::Tensor targets() const;

 private:
  class Array;
  std::vector<const Array*> class_arrays() const;
  void find_classes();

  std::vector<std::unique_ptr<const Array>> arrays_;
  Options options_;
  int64_t size_ = 0;
  LabelRange labels_;
  SampleSpec spec_;
};

// Bytes of a row, at most the largest size_t: headers may promise any size.
size_t row_bytes(const Shape& shape, at::ScalarType dtype);

// Throws UserError if `array` is a single number, or has empty rows.
void require_rows(const StoredArray& array);

}  // namespace tutti
