#include "data/arrays/array_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr const char* kInput = "input";
constexpr int64_t kRowsAtOnce = 4096;
constexpr int64_t kRowsInDigest = 16;

at::ScalarType yielded_as(const std::string& name, at::ScalarType stored, bool keeps_float64) {
  if (stored == at::kDouble && keeps_float64 && name == kInput) return stored;
  if (at::isFloatingType(stored)) return at::kFloat;
  const bool as_is = name != kTarget && (stored == at::kByte || stored == at::kBool);
  return as_is ? stored : at::kLong;
}

std::vector<int64_t> rows_between(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(static_cast<size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

}  // namespace

class ArrayDataset::Array {
 public:
  Array(StoredArray stored, bool keeps_float64)
      : stored_(std::move(stored)),
        dtype_(yielded_as(stored_.name, stored_.dtype, keeps_float64)),
        row_shape_(stored_.shape.begin() + 1, stored_.shape.end()) {}

  const std::string& name() const { return stored_.name; }
  const Shape& row_shape() const { return row_shape_; }
  int64_t rows() const { return stored_.shape[0]; }
  int64_t elements() const { return rows() * row_elements(); }
  int64_t num_classes() const { return stored_.num_classes; }
  at::ScalarType dtype() const { return dtype_; }  // as read
  const std::string& path() const { return stored_.file; }
  const std::string& where() const { return stored_.where; }

  at::Tensor get(std::span<const int64_t> indices) const {
    Shape shape = stored_.shape;
    shape[0] = static_cast<int64_t>(indices.size());
    const at::Tensor stored = at::empty(shape, stored_.dtype);
    stored_.rows->gather(indices, static_cast<std::byte*>(stored.mutable_data_ptr()));
    return stored.scalar_type() == dtype_ ? stored : stored.to(dtype_);
  }

  // Calls check(values, first row) for all rows, in blocks of a few thousand.
  template <class Check>
  void for_all(Check check) const {
    for (int64_t row = 0; row < rows(); row += kRowsAtOnce) {
      check(get(rows_between(row, std::min(rows(), row + kRowsAtOnce))), row);
    }
  }

  int64_t row_of(int64_t first_row, int64_t element) const { return first_row + element / row_elements(); }

 private:
  int64_t row_elements() const {
    return std::accumulate(row_shape_.begin(), row_shape_.end(), int64_t{1}, std::multiplies<>());
  }

  StoredArray stored_;
  at::ScalarType dtype_;
  Shape row_shape_;
};

namespace {

// Common marks of targets that do not count, in other datasets.
bool looks_ignored(int64_t label) { return label < 0 || label == 255; }

template <class Array>
void check_labels(const Array& labels, int64_t classes, int64_t ignore_index) {
  const bool may_ignore = labels.name() == kTarget;
  labels.for_all([&](const at::Tensor& values, int64_t first_row) {
    const int64_t* value = values.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      const bool ignored = may_ignore && (value[i] == kIgnoredTarget || value[i] == ignore_index);
      if ((value[i] >= 0 && value[i] < classes) || ignored) continue;
      throw UserError(
          {labels.path()},
          labels.where() + ", row " + std::to_string(labels.row_of(first_row, i)) +
              ": labels out of range: " + std::to_string(value[i]) +
              (classes == kMaxInferredClasses
                   ? " is not a class"
                   : " is not in [0, " + std::to_string(classes) + "), the classes") +
              (may_ignore && looks_ignored(value[i])
                   ? "; model.ignore_index = " + std::to_string(value[i]) + " leaves such targets out" +
                         (value[i] < 0 ? ", and values below zero need floats" : "")
                   : ""));
    }
  });
}

template <class Array>
LabelRange range_of(const Array& labels, int64_t ignore_index) {
  LabelCounter counter;
  const bool may_ignore = labels.name() == kTarget;
  labels.for_all([&](const at::Tensor& values, int64_t first_row) {
    const int64_t* value = values.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < values.numel(); ++i)
      if (value[i] >= 0 && !(may_ignore && value[i] == ignore_index))
        counter.add(value[i], labels.row_of(first_row, i));
  });
  return counter.range();
}

template <class Array>
void check_finite(const Array& array) {
  array.for_all([&](const at::Tensor& values, int64_t first_row) {
    const at::Tensor floats = values.to(at::kFloat);
    const float* value = floats.const_data_ptr<float>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      if (std::isfinite(value[i])) continue;
      throw UserError({array.path()}, array.where() + ", row " + std::to_string(array.row_of(first_row, i)) +
                                          ": a value that is not finite: " + std::to_string(value[i]));
    }
  });
}

}  // namespace

ArrayDataset::ArrayDataset(std::vector<StoredArray> arrays, const Options& options) : options_(options) {
  TUTTI_ASSERT(!arrays.empty(), "no arrays");
  size_ = arrays[0].shape[0];
  for (StoredArray& stored : arrays) {
    if (stored.shape[0] != size_)
      throw UserError({stored.file}, stored.where + " has " + std::to_string(stored.shape[0]) + " rows, '" +
                                         arrays_[0]->name() + "' has " + std::to_string(size_));
    arrays_.push_back(std::make_unique<Array>(std::move(stored), options.keeps_float64));
    spec_.shapes[arrays_.back()->name()] = arrays_.back()->row_shape();
    spec_.dtypes[arrays_.back()->name()] = arrays_.back()->dtype();
  }
  if (size_ == 0) throw UserError({arrays_[0]->path()}, arrays_[0]->where() + " has no rows");
  find_classes();
}

ArrayDataset::~ArrayDataset() = default;

// The arrays with class labels: an integer target, and an integer input with several per sample (tokens).
std::vector<const ArrayDataset::Array*> ArrayDataset::class_arrays() const {
  const auto integers = [this](const char* name) -> const Array* {
    for (const auto& array : arrays_)
      if (array->name() == name && array->dtype() == at::kLong) return array.get();
    return nullptr;
  };
  const Array *target = integers(kTarget), *input = integers(kInput);
  if (!target) return {};
  const bool tokens = input && !input->row_shape().empty() && input->row_shape() == target->row_shape();
  return tokens ? std::vector{target, input} : std::vector{target};
}

void ArrayDataset::find_classes() {
  int64_t classes = 0;
  const auto arrays = class_arrays();
  for (const Array* array : arrays) {
    if (array->name() == kTarget)
      spec_.classes = options_.num_classes > 0 ? options_.num_classes : array->num_classes();
    if (array->elements() > kMaxCheckedLabels) continue;
    check_labels(*array, spec_.classes > 0 ? spec_.classes : kMaxInferredClasses, options_.ignore_index);
    const LabelRange range = range_of(*array, options_.ignore_index);
    classes = std::max(classes, range.largest + 1);
    if (arrays.size() == 1) labels_ = range;
  }
  if (spec_.classes > 0) labels_.present = 0;
  if (spec_.classes == 0) spec_.classes = classes;
}

Batch ArrayDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  TensorTree::Children children;
  children.reserve(arrays_.size());
  for (const auto& array : arrays_) children.emplace_back(array->name(), array->get(indices));
  return Batch(std::move(children));
}

at::Tensor ArrayDataset::targets() const {
  for (const auto& array : arrays_) {
    if (array->name() != kTarget || array->elements() > kMaxCheckedLabels) continue;
    std::vector<at::Tensor> parts;
    array->for_all([&](const at::Tensor& values, int64_t) { parts.push_back(values); });
    return at::cat(parts);
  }
  return {};
}

void ArrayDataset::scan() const {
  for (const auto& array : arrays_)
    if (at::isFloatingType(array->dtype())) check_finite(*array);
  if (spec_.classes == 0) return;
  for (const Array* array : class_arrays()) check_labels(*array, spec_.classes, options_.ignore_index);
}

uint64_t ArrayDataset::digest() const {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kRowsInDigest; ++i) rows.push_back(i * (size_ - 1) / (kRowsInDigest - 1));
  uint64_t digest = static_cast<uint64_t>(size_);
  for (const auto& [name, values] : get(rows, {}).leaves()) {
    digest = XXH3_64bits_withSeed(name.data(), name.size(), digest);
    digest = XXH3_64bits_withSeed(values.const_data_ptr(), values.nbytes(), digest);
  }
  return digest;
}

size_t row_bytes(const Shape& shape, at::ScalarType dtype) {
  size_t bytes = c10::elementSize(dtype);
  for (std::size_t d = 1; d < shape.size(); ++d)
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(shape[d]), &bytes)) return SIZE_MAX;
  return bytes;
}

void require_rows(const StoredArray& array) {
  if (array.shape.empty())
    throw UserError({array.file}, array.where + " is a scalar, not an array of samples");
  if (row_bytes(array.shape, array.dtype) == 0)
    throw UserError({array.file}, array.where + " has empty rows");
}

}  // namespace tutti
