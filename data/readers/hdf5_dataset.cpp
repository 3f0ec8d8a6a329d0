#include "data/readers/hdf5_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/readers/hdf5_rows.h"
#include "data/readers/opened.h"
#include "io/formats/dtypes.h"
#include "io/hdf5/hdf5.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/nearest_name.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr const char* kInput = "input";
constexpr int64_t kMaxInferredClasses = int64_t{1} << 24;
constexpr int64_t kRowsAtOnce = 4096;
constexpr int64_t kRowsInDigest = 16;
constexpr std::size_t kMostListed = 12;

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

// "images uint8 [100, 32, 32, 3], labels int64 [100]"
std::string contents(const Hdf5File& file) {
  std::string text;
  std::size_t listed = 0;
  for (const Hdf5Entry& entry : file.datasets()) {
    if (listed++ == kMostListed) return text + ", ...";
    text += (text.empty() ? "" : ", ") + entry.path + ' ' + dtype_name(entry.dtype) + ' ' +
            (entry.shape.empty() ? "number" : shape_text(entry.shape));
  }
  return text.empty() ? "no arrays of numbers" : text;
}

std::vector<std::string> arrays_of(const Hdf5File& file, const std::string& prefix) {
  std::vector<std::string> names;
  for (const Hdf5Entry& entry : file.datasets()) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string name = entry.path.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.push_back(name);
  }
  if (names.empty()) {
    throw MissingArrays("group", file.path(),
                        "no arrays in the group '/" + prefix + "'; the file has " + contents(file));
  }
  return names;
}

// The path of the array that batches have by this name.
std::string stored_path(const Hdf5Dataset::Options& options, const std::string& prefix,
                        const std::string& name) {
  const auto found = options.stored_as.find(name);
  const std::string& stored = found == options.stored_as.end() ? name : found->second;
  return stored.starts_with('/') ? stored.substr(stored.find_first_not_of('/')) : prefix + stored;
}

std::string nearest_path(const Hdf5File& file, const std::string& path) {
  std::vector<std::string> paths;
  for (const Hdf5Entry& entry : file.datasets()) paths.push_back(entry.path);
  return nearest_name(path, paths);
}

const Hdf5Entry& array_at(const Hdf5File& file, const std::string& prefix, const std::string& path,
                          const std::string& name) {
  if (const Hdf5Entry* found = file.find(path)) return *found;
  if (const std::string why = file.why_not_listed(path); !why.empty())
    throw UserError({file.path()}, "array '" + path + "' " + why);
  const auto is_in_group = [&](const Hdf5Entry& entry) { return entry.path.starts_with(prefix); };
  if (path.starts_with(prefix) && std::ranges::none_of(file.datasets(), is_in_group))
    arrays_of(file, prefix);  // throws
  const std::string near = nearest_path(file, path);
  throw MissingArrays(
      "arrays", file.path(),
      "no array '" + path + "'" +
          (near.empty() ? "; the file has " : "; did you mean '" + near + "'? The file has ") +
          contents(file),
      name);
}

std::vector<int64_t> rows_between(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(static_cast<size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

// A table has batches' names for those of the file.
void name_arrays(const Setting& arrays, Hdf5Dataset::Options& options) {
  if (!arrays.is_table()) {
    options.arrays = arrays.texts();
    return;
  }
  for (const auto& [name, stored] : arrays.table()) {
    if (stored.text().find_first_not_of('/') == std::string::npos)
      stored.fail("expected the name of an array");
    options.arrays.push_back(name);
    options.stored_as[name] = stored.text();
  }
}

}  // namespace

class Hdf5Dataset::Array {
 public:
  Array(std::string name, std::string file, const Hdf5Entry& entry)
      : name_(std::move(name)),
        file_(std::move(file)),
        entry_(entry),
        dtype_(yielded_as(name_, entry.dtype)) {
    if (entry.shape.empty()) throw UserError({path()}, where() + " is a scalar, not an array of samples");
    row_shape_.assign(entry.shape.begin() + 1, entry.shape.end());
    if (const std::string& filter = entry.storage.missing_filter; !filter.empty())
      throw UserError({path()}, where() + " is compressed with " + filter +
                                    ", which this HDF5 does not read; write it with gzip, or set " +
                                    "HDF5_PLUGIN_PATH to a plugin's folder");
    if (row_bytes(entry) == 0) throw UserError({path()}, where() + " has empty rows");
  }

  const std::string& name() const { return name_; }
  const Hdf5Entry& entry() const { return entry_; }
  const Shape& row_shape() const { return row_shape_; }
  int64_t rows() const { return entry_.shape[0]; }
  int64_t elements() const {
    return std::accumulate(row_shape_.begin(), row_shape_.end(), rows(), std::multiplies<>());
  }
  at::ScalarType dtype() const { return dtype_; }
  const std::string& path() const { return file_; }
  std::string where() const { return "array '" + entry_.path + "'"; }

  void read_from(Hdf5RowsPtr source) { source_ = std::move(source); }

  at::Tensor get(std::span<const int64_t> indices) const {
    Shape shape = entry_.shape;
    shape[0] = static_cast<int64_t>(indices.size());
    const at::Tensor stored = at::empty(shape, entry_.dtype);
    source_->gather(indices, static_cast<std::byte*>(stored.mutable_data_ptr()));
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
    return first_row + element / static_cast<int64_t>(row_bytes(entry_) / c10::elementSize(entry_.dtype));
  }

 private:
  std::string name_;
  std::string file_;
  Hdf5Entry entry_;
  at::ScalarType dtype_;  // as read
  Shape row_shape_;
  Hdf5RowsPtr source_;
};

// Chooses how each array of a file is read.
class Hdf5Dataset::Cache {
 public:
  Cache(std::shared_ptr<const Hdf5File> file, size_t bytes)
      : file_(std::move(file)), map_(std::make_shared<const MappedFile>(file_->path())), left_(bytes) {}

  // The smallest arrays come first, so that labels are kept.
  void serve(std::vector<Array*> arrays) {
    std::ranges::stable_sort(arrays, {}, [](const Array* one) { return all_bytes(one->entry()); });
    for (Array* array : arrays) array->read_from(source_of(*array));
  }

  std::string advice() const { return advice_; }

 private:
  Hdf5RowsPtr source_of(const Array& array) {
    const Hdf5Entry& entry = array.entry();
    const size_t bytes = all_bytes(entry);
    file_->require_sound(entry.path);
    if (entry.file_offset) {
      require_whole(array, *entry.file_offset, bytes);
      return mapped_rows(map_, entry);
    }
    needed_ += bytes;
    if (bytes <= left_) {
      left_ -= bytes;
      return kept_rows(file_, entry);
    }
    if (rows_of_chunk(entry) > 1) advise(array);
    return recent_rows(file_, entry, std::exchange(left_, 0));
  }

  void require_whole(const Array& array, uint64_t offset, uint64_t bytes) const {
    uint64_t end = 0;
    const bool is_whole = !__builtin_add_overflow(offset, bytes, &end) && end <= map_->bytes().size();
    if (is_whole) return;
    throw UserError({array.path()}, array.where() + " ends at byte " + std::to_string(end) +
                                        ", the file has " + std::to_string(map_->bytes().size()) +
                                        ": truncated");
  }

  void advise(const Array& array) {
    const Hdf5Entry& entry = array.entry();
    const std::string rows = std::to_string(rows_of_chunk(entry));
    std::string filters;
    for (const std::string& filter : entry.storage.filters)
      filters += (filters.empty() ? " (" : ", ") + filter;
    const auto megabytes =
        std::to_string(static_cast<int64_t>(std::ceil(static_cast<double>(needed_) / 1e6)));
    advice_ =
        array.path() + ": " + array.where() + " is stored in chunks of " + rows + " samples" +
        (filters.empty() ? "" : filters + ")") + " and does not fit in cache_mb: a shuffled sample costs " +
        "the reading of " + rows + ". cache_mb = " + megabytes +
        " keeps it in the memory of each process; h5repack -f NONE -l CONTI copies the file to one that "
        "needs no memory";
  }

  std::shared_ptr<const Hdf5File> file_;
  std::shared_ptr<const MappedFile> map_;
  size_t left_;
  size_t needed_ = 0;
  std::string advice_;
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
int64_t largest_label(const Array& labels, int64_t ignore_index) {
  int64_t largest = -1;
  labels.for_all([&](const at::Tensor& values, int64_t) {
    const at::Tensor counted =
        labels.name() == kTarget ? values.masked_fill(values.eq(ignore_index), -1) : values;
    largest = std::max(largest, counted.max().item<int64_t>());
  });
  return largest;
}

template <class Array>
void check_finite(const Array& array) {
  array.for_all([&](const at::Tensor& values, int64_t first_row) {
    const float* value = values.const_data_ptr<float>();
    for (int64_t i = 0; i < values.numel(); ++i) {
      if (std::isfinite(value[i])) continue;
      throw UserError({array.path()}, array.where() + ", row " + std::to_string(array.row_of(first_row, i)) +
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

Hdf5Dataset::Hdf5Dataset(Options options) : ignore_index_(options.ignore_index) {
  open_arrays(options);
  find_classes(options);
}

Hdf5Dataset::~Hdf5Dataset() = default;

void Hdf5Dataset::open_arrays(const Options& options) {
  const auto file = std::make_shared<const Hdf5File>(options.path);
  const std::string prefix = prefix_of(options.group);
  std::vector<Array*> opened;
  for (const std::string& name : options.arrays.empty() ? arrays_of(*file, prefix) : options.arrays) {
    auto array = std::make_unique<Array>(name, file->path(),
                                         array_at(*file, prefix, stored_path(options, prefix, name), name));
    spec_.shapes[name] = array->row_shape();
    spec_.dtypes[name] = array->dtype();
    if (opened.empty()) size_ = array->rows();
    if (array->rows() != size_) {
      throw UserError({array->path()}, array->where() + " has " + std::to_string(array->rows()) + " rows, '" +
                                           opened[0]->name() + "' has " + std::to_string(size_));
    }
    opened.push_back(array.get());
    arrays_.push_back(std::move(array));
  }
  if (size_ == 0) throw UserError({arrays_[0]->path()}, arrays_[0]->where() + " has no rows");
  Cache cache(file, options.cache_bytes);
  cache.serve(opened);
  advice_ = cache.advice();
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
    if (array->name() == kTarget)
      spec_.classes = declared_classes(options.num_classes, array->entry().attributes);
    if (array->elements() > kMaxCheckedLabels) continue;
    check_labels(*array, spec_.classes > 0 ? spec_.classes : kMaxInferredClasses, ignore_index_);
    if (spec_.classes == 0) found = std::max(found, largest_label(*array, ignore_index_) + 1);
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
  for (const Array* array : class_arrays()) check_labels(*array, spec_.classes, ignore_index_);
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

DatasetPtr Hdf5Options::make(const Setting& section, const DataEnvironment& environment) const {
  Hdf5Dataset::Options options{.path = path,
                               .group = group,
                               .num_classes = num_classes,
                               .ignore_index = environment.ignore_index,
                               .cache_bytes = static_cast<std::size_t>(cache_mb * kBytesPerMb)};
  if (arrays) name_arrays(*arrays, options);
  return opened(section, [&] {
    const auto dataset = std::make_shared<const Hdf5Dataset>(options);
    dataset->digest();  // reads some rows, so that an unreadable file is an error now
    return dataset;
  });
}

}  // namespace tutti
