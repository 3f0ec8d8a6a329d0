#include "data/readers/hdf5_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "io/hdf5/hdf5.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr const char* kInput = "input";
constexpr int64_t kIgnoredLabel = -100;
constexpr int64_t kMaxInferredClasses = int64_t{1} << 24;
constexpr int64_t kRowsAtOnce = 4096;
constexpr int64_t kRowsInDigest = 16;

at::ScalarType yielded_as(const std::string& name, at::ScalarType stored) {
  if (at::isFloatingType(stored)) return at::kFloat;
  const bool as_is = name != kTarget && (stored == at::kByte || stored == at::kBool);
  return as_is ? stored : at::kLong;
}

// "/", "train", "/train/" -> "", "train/", "train/"
std::string prefix_of(const std::string& group) {
  const size_t first = group.find_first_not_of('/');
  if (first == std::string::npos) return {};
  return group.substr(first, group.find_last_not_of('/') - first + 1) + "/";
}

std::vector<std::string> arrays_of(const Hdf5File& file, const std::string& prefix) {
  std::vector<std::string> names;
  for (const Hdf5Entry& entry : file.datasets()) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string name = entry.path.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.push_back(name);
  }
  if (names.empty()) {
    throw MissingArrays(
        "group", file.path() + ": no datasets in the group '/" + prefix + "'; there is " + file.names());
  }
  return names;
}

const Hdf5Entry& array_at(const Hdf5File& file, const std::string& prefix, const std::string& name) {
  if (const Hdf5Entry* found = file.find(prefix + name)) return *found;
  arrays_of(file, prefix);  // throws if the group is missing
  throw MissingArrays("arrays",
                      file.path() + ": no dataset '" + prefix + name + "'; there is " + file.names());
}

std::vector<int64_t> rows_between(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(static_cast<size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

}  // namespace

class Hdf5Dataset::Array {
 public:
  Array(std::string name, std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry,
        std::shared_ptr<const MappedFile> map)
      : name_(std::move(name)),
        file_(std::move(file)),
        entry_(entry),
        dtype_(yielded_as(name_, entry.dtype)) {
    if (entry.shape.empty()) throw UserError(where() + " is a scalar, not an array of samples");
    row_shape_.assign(entry.shape.begin() + 1, entry.shape.end());
    const int64_t row =
        std::accumulate(row_shape_.begin(), row_shape_.end(), int64_t{1}, std::multiplies<>());
    row_bytes_ = static_cast<size_t>(row) * c10::elementSize(entry.dtype);
    if (row == 0) throw UserError(where() + " has nothing in its rows");
    if (entry.file_offset) use_map(std::move(map));
  }

  const std::string& name() const { return name_; }
  const Shape& row_shape() const { return row_shape_; }
  int64_t rows() const { return entry_.shape[0]; }
  const Hdf5Attributes& attributes() const { return entry_.attributes; }
  int64_t elements() const {
    return std::accumulate(row_shape_.begin(), row_shape_.end(), rows(), std::multiplies<>());
  }
  at::ScalarType dtype() const { return dtype_; }
  // True if labels may be -100, which losses ignore. Not with one label a sample: nothing would be learned.
  bool may_ignore() const { return name_ == kTarget && !row_shape_.empty(); }
  std::string where() const { return file_->path() + ": array '" + entry_.path + "'"; }

  at::Tensor get(std::span<const int64_t> indices) const {
    const at::Tensor stored = map_ ? gather(indices) : file_->read_rows(entry_.path, indices);
    return stored.scalar_type() == dtype_ ? stored : stored.to(dtype_);
  }

  // Calls check(values, first row) for all rows, in blocks of a few thousand.
  template <class Check>
  void for_all(Check check) const {
    for (int64_t row = 0; row < rows(); row += kRowsAtOnce) {
      check(get(rows_between(row, std::min(rows(), row + kRowsAtOnce))), row);
    }
  }

  int64_t row_of(int64_t first_row, int64_t element) const {
    return first_row + element / static_cast<int64_t>(row_bytes_ / c10::elementSize(entry_.dtype));
  }

 private:
  void use_map(std::shared_ptr<const MappedFile> map) {
    const uint64_t end = *entry_.file_offset + row_bytes_ * static_cast<uint64_t>(rows());
    if (end > map->bytes().size()) {
      throw UserError(where() + " ends at byte " + std::to_string(end) + ", the file has " +
                      std::to_string(map->bytes().size()) + ": truncated");
    }
    map_ = std::move(map);
  }

  at::Tensor gather(std::span<const int64_t> indices) const {
    Shape shape = entry_.shape;
    shape[0] = static_cast<int64_t>(indices.size());
    at::Tensor rows = at::empty(shape, entry_.dtype);
    auto* to = static_cast<std::byte*>(rows.mutable_data_ptr());
    const std::byte* from = map_->bytes().data() + *entry_.file_offset;
    for (const int64_t index : indices) {
      TUTTI_ASSERT(index >= 0 && index < entry_.shape[0], where() + ": row " + std::to_string(index));
      std::memcpy(to, from + static_cast<size_t>(index) * row_bytes_, row_bytes_);
      to += row_bytes_;
    }
    return rows;
  }

  std::string name_;
  std::shared_ptr<const Hdf5File> file_;
  Hdf5Entry entry_;
  at::ScalarType dtype_;  // as read
  Shape row_shape_;
  size_t row_bytes_ = 0;  // as stored
  std::shared_ptr<const MappedFile> map_;
};

namespace {

template <class Array>
void check_labels(const Array& labels, int64_t classes) {
  labels.for_all([&](const at::Tensor& values, int64_t first_row) {
    const int64_t* value = values.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      const bool ignored = value[i] == kIgnoredLabel && labels.may_ignore();
      if ((value[i] >= 0 && value[i] < classes) || ignored) continue;
      throw UserError(labels.where() + ", row " + std::to_string(labels.row_of(first_row, i)) +
                      ": labels out of range: " + std::to_string(value[i]) + " is not in [0, " +
                      std::to_string(classes) + ")");
    }
  });
}

template <class Array>
int64_t largest_label(const Array& labels) {
  int64_t largest = -1;
  labels.for_all(
      [&](const at::Tensor& values, int64_t) { largest = std::max(largest, values.max().item<int64_t>()); });
  return largest;
}

template <class Array>
void check_finite(const Array& array) {
  array.for_all([&](const at::Tensor& values, int64_t first_row) {
    const float* value = values.const_data_ptr<float>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      if (std::isfinite(value[i])) continue;
      throw UserError(array.where() + ", row " + std::to_string(array.row_of(first_row, i)) +
                      ": a value that is not finite: " + std::to_string(value[i]));
    }
  });
}

int64_t declared_classes(int64_t option, const Hdf5Attributes& attributes) {
  const auto attribute = attributes.find("num_classes");
  const auto* integer = attribute == attributes.end() ? nullptr : std::get_if<int64_t>(&attribute->second);
  return option > 0 || integer == nullptr ? option : *integer;
}

}  // namespace

Hdf5Dataset::Hdf5Dataset(Options options) {
  open_arrays(options);
  find_classes(options);
}

Hdf5Dataset::~Hdf5Dataset() = default;

void Hdf5Dataset::open_arrays(const Options& options) {
  const auto file = std::make_shared<const Hdf5File>(options.path);
  const auto map = std::make_shared<const MappedFile>(options.path);
  const std::string prefix = prefix_of(options.group);
  for (const std::string& name : options.arrays.empty() ? arrays_of(*file, prefix) : options.arrays) {
    arrays_.push_back(std::make_unique<const Array>(name, file, array_at(*file, prefix, name), map));
    const Array& array = *arrays_.back();
    spec_.shapes[name] = array.row_shape();
    spec_.dtypes[name] = array.dtype();
    if (arrays_.size() == 1) size_ = array.rows();
    if (array.rows() != size_) {
      throw UserError(array.where() + " has " + std::to_string(array.rows()) + " rows, '" +
                      arrays_[0]->name() + "' has " + std::to_string(size_));
    }
  }
  if (size_ == 0) throw UserError(arrays_[0]->where() + " has no rows");
}

// The arrays with class labels: an integer target, and an integer input with several per sample (tokens).
std::vector<const Hdf5Dataset::Array*> Hdf5Dataset::class_arrays() const {
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

void Hdf5Dataset::find_classes(const Options& options) {
  int64_t found = 0;
  for (const Array* array : class_arrays()) {
    if (array->name() == kTarget) spec_.classes = declared_classes(options.num_classes, array->attributes());
    if (array->elements() > kMaxCheckedLabels) continue;
    check_labels(*array, spec_.classes > 0 ? spec_.classes : kMaxInferredClasses);
    if (spec_.classes == 0) found = std::max(found, largest_label(*array) + 1);
  }
  if (spec_.classes == 0) spec_.classes = found;
}

Batch Hdf5Dataset::get(std::span<const int64_t> indices, const Epoch&) const {
  TensorTree::Children children;
  children.reserve(arrays_.size());
  for (const auto& array : arrays_) children.emplace_back(array->name(), array->get(indices));
  return Batch(std::move(children));
}

void Hdf5Dataset::scan() const {
  for (const auto& array : arrays_)
    if (array->dtype() == at::kFloat) check_finite(*array);
  if (spec_.classes == 0) return;
  for (const Array* array : class_arrays()) check_labels(*array, spec_.classes);
}

uint64_t Hdf5Dataset::digest() const {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kRowsInDigest; ++i) rows.push_back(i * (size_ - 1) / (kRowsInDigest - 1));
  uint64_t digest = static_cast<uint64_t>(size_);
  for (const auto& [name, values] : get(rows, {}).leaves()) {
    digest = XXH3_64bits_withSeed(name.data(), name.size(), digest);
    digest = XXH3_64bits_withSeed(values.const_data_ptr(), values.nbytes(), digest);
  }
  return digest;
}

}  // namespace tutti
