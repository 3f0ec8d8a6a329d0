#include "data/arrays/hdf5_dataset.h"

#include <algorithm>
#include <cmath>

#include "data/arrays/hdf5_rows.h"
#include "io/formats/dtypes.h"
#include "io/hdf5/hdf5.h"
#include "io/mapped_file.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

constexpr std::size_t kMostListed = 12;

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

// Names of arrays that models read, and of those of Hugging Face's tokenizers.
constexpr std::string_view kReadArrays[] = {kInputArray,      kTargetArray, "input_ids",
                                            "attention_mask", "labels",     "token_type_ids"};

// The arrays of a group that are not read. Throws UserError if a model would look for one by its name.
std::string left_out_text(const Hdf5File& file, const std::string& prefix) {
  std::vector<std::string> names;
  for (const std::string& path : file.others()) {
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    if (std::ranges::find(kReadArrays, name) != std::end(kReadArrays))
      throw UserError({file.path()}, "array '" + path + "' " + file.why_not_listed(path));
    if (name.find('/') == std::string::npos) names.push_back(path);
  }
  if (names.empty()) return "";
  return file.path() + ": " + std::to_string(names.size()) +
         (names.size() == 1 ? " array is" : " arrays are") + " left out: '" + names[0] + "' " +
         file.why_not_listed(names[0]) + (names.size() > 1 ? "; ..." : "");
}

std::vector<std::string> arrays_of(const Hdf5File& file, const std::string& prefix) {
  std::vector<std::string> names;
  for (const Hdf5Entry& entry : file.datasets()) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string name = entry.path.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.push_back(name);
  }
  if (names.empty()) {
    throw WrongKey("group", {file.path()},
                   "no arrays in the group '/" + prefix + "'; the file has " + contents(file));
  }
  return names;
}

// The path of the array that batches have by this name.
std::string stored_path(const Hdf5Dataset::Options& options, const std::string& prefix,
                        const std::string& name) {
  const auto stored_name = options.stored_as.find(name);
  const std::string& stored = stored_name == options.stored_as.end() ? name : stored_name->second;
  return stored.starts_with('/') ? stored.substr(stored.find_first_not_of('/')) : prefix + stored;
}

std::string nearest_path(const Hdf5File& file, const std::string& path) {
  std::vector<std::string> paths;
  for (const Hdf5Entry& entry : file.datasets()) paths.push_back(entry.path);
  return nearest_name(path, paths);
}

const Hdf5Entry& array_at(const Hdf5File& file, const std::string& prefix, const std::string& path,
                          const std::string& name) {
  if (const Hdf5Entry* entry = file.find(path)) return *entry;
  if (const std::string why = file.why_not_listed(path); !why.empty())
    throw UserError({file.path()}, "array '" + path + "' " + why);
  const auto is_in_group = [&](const Hdf5Entry& entry) { return entry.path.starts_with(prefix); };
  if (path.starts_with(prefix) && std::ranges::none_of(file.datasets(), is_in_group))
    arrays_of(file, prefix);  // throws
  const std::string near = nearest_path(file, path);
  throw WrongKey("arrays", {file.path()},
                 "no array '" + path + "'" +
                     (near.empty() ? "; the file has " : "; did you mean '" + near + "'? The file has ") +
                     contents(file),
                 name);
}

int64_t declared_classes(const Hdf5Attributes& attributes) {
  const auto attribute = attributes.find("num_classes");
  const auto* integer = attribute == attributes.end() ? nullptr : std::get_if<int64_t>(&attribute->second);
  return integer == nullptr ? 0 : *integer;
}

struct Found {
  StoredArray stored;
  Hdf5Entry entry;
};

Found found_array(const Hdf5File& file, const std::string& prefix, const std::string& path,
                  const std::string& name) {
  const Hdf5Entry& entry = array_at(file, prefix, path, name);
  Found array{{.name = name,
               .file = file.path(),
               .where = "array '" + entry.path + "'",
               .dtype = entry.dtype,
               .shape = entry.shape,
               .num_classes = declared_classes(entry.attributes)},
              entry};
  if (const std::string& filter = entry.storage.missing_filter; !filter.empty())
    throw UserError({file.path()}, array.stored.where + " is compressed with " + filter +
                                       ", which this HDF5 does not read; write it with gzip, or set " +
                                       "HDF5_PLUGIN_PATH to a plugin's folder");
  require_rows(array.stored);
  return array;
}

// Chooses how each array of a file is read.
class Cache {
 public:
  Cache(std::shared_ptr<const Hdf5File> file, size_t bytes)
      : file_(std::move(file)), map_(std::make_shared<const MappedFile>(file_->path())), left_(bytes) {}

  // The smallest arrays come first, so that labels are kept.
  void serve(std::vector<Found>& arrays) {
    std::vector<Found*> by_size;
    for (Found& array : arrays) by_size.push_back(&array);
    std::ranges::stable_sort(by_size, {}, [](const Found* one) { return all_bytes(one->entry); });
    for (Found* array : by_size) array->stored.rows = source_of(*array);
  }

  const std::string& advice() const { return advice_; }

 private:
  ArrayRowsPtr source_of(const Found& array) {
    const Hdf5Entry& entry = array.entry;
    const size_t bytes = all_bytes(entry);
    file_->require_sound(entry.path);
    if (entry.file_offset) {
      require_whole(array.stored, *entry.file_offset, bytes);
      return contiguous_rows(map_, map_->bytes().subspan(*entry.file_offset, bytes), entry.shape[0]);
    }
    needed_ += bytes;
    if (bytes <= left_) {
      left_ -= bytes;
      return kept_rows(file_, entry);
    }
    if (rows_of_chunk(entry) > 1) advise(array);
    return recent_rows(file_, entry, std::exchange(left_, 0));
  }

  void require_whole(const StoredArray& array, uint64_t offset, uint64_t bytes) const {
    uint64_t end = 0;
    const bool is_whole = !__builtin_add_overflow(offset, bytes, &end) && end <= map_->bytes().size();
    if (is_whole) return;
    throw UserError({array.file}, array.where + " ends at byte " + std::to_string(end) + ", the file has " +
                                      std::to_string(map_->bytes().size()) + ": truncated");
  }

  void advise(const Found& array) {
    const std::string rows = std::to_string(rows_of_chunk(array.entry));
    std::string filters;
    for (const std::string& filter : array.entry.storage.filters)
      filters += (filters.empty() ? " (" : ", ") + filter;
    const auto megabytes =
        std::to_string(static_cast<int64_t>(std::ceil(static_cast<double>(needed_) / 1e6)));
    advice_ = array.stored.file + ": " + array.stored.where + " is stored in chunks of " + rows + " samples" +
              (filters.empty() ? "" : filters + ")") +
              " and does not fit in cache_mb: a shuffled sample costs the reading of " + rows +
              ". cache_mb = " + megabytes +
              " keeps it in the memory of each process; h5repack -f NONE -l CONTI copies the file to one "
              "that needs no memory";
  }

  std::shared_ptr<const Hdf5File> file_;
  std::shared_ptr<const MappedFile> map_;
  size_t left_;
  size_t needed_ = 0;
  std::string advice_;
};

}  // namespace

struct Hdf5Dataset::Opened {
  std::vector<StoredArray> arrays;
  ArrayDataset::Options options;

  explicit Opened(const Hdf5Dataset::Options& from)
      : options{.num_classes = from.num_classes,
                .ignore_index = from.ignore_index,
                .keeps_float64 = from.keeps_float64} {
    const auto file = std::make_shared<const Hdf5File>(from.path, SoftLinks::kFollowed);
    const std::string prefix = prefix_of(from.group);
    const std::string left_out = from.arrays.empty() ? left_out_text(*file, prefix) : "";
    std::vector<Found> found_arrays;
    for (const std::string& name : from.arrays.empty() ? arrays_of(*file, prefix) : from.arrays)
      found_arrays.push_back(found_array(*file, prefix, stored_path(from, prefix, name), name));
    Cache cache(file, from.cache_bytes);
    cache.serve(found_arrays);
    options.advice = cache.advice();
    if (options.advice.empty()) options.advice = left_out;
    for (Found& array : found_arrays) arrays.push_back(std::move(array.stored));
  }
};

Hdf5Dataset::Hdf5Dataset(const Options& options) : Hdf5Dataset(Opened(options)) {}

Hdf5Dataset::Hdf5Dataset(Opened opened) : ArrayDataset(std::move(opened.arrays), opened.options) {}

}  // namespace tutti
