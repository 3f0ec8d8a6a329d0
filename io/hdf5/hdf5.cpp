#include "io/hdf5/hdf5.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "io/hdf5/hdf5_chunks.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_listing.h"
#include "io/hdf5/hdf5_open.h"
#include "io/hdf5/hdf5_types.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr size_t kNamesInMessage = 12;

std::optional<Hdf5Attribute> read_text(hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0 || text == nullptr) return std::nullopt;
    const std::string copy = text;
    H5free_memory(text);
    return copy;
  }
  if (H5Tget_size(type) > H5Aget_storage_size(attribute)) return std::nullopt;
  std::string text(H5Tget_size(type), '\0');
  if (H5Aread(attribute, type, text.data()) < 0) return std::nullopt;
  return text.substr(0, text.find('\0'));
}

template <class Number>
std::optional<Hdf5Attribute> read_number(hid_t attribute, hid_t type) {
  Number value{};
  if (H5Aread(attribute, type, &value) < 0) return std::nullopt;
  return value;
}

std::optional<Hdf5Attribute> read_attribute(hid_t attribute) {
  const Hdf5Handle space(H5Aget_space(attribute), H5Sclose), type(H5Aget_type(attribute), H5Tclose);
  if (H5Sget_simple_extent_npoints(space) != 1) return std::nullopt;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return read_number<int64_t>(attribute, H5T_NATIVE_INT64);
    case H5T_FLOAT:
      return read_number<double>(attribute, H5T_NATIVE_DOUBLE);
    case H5T_STRING:
      return read_text(attribute, type);
    default:
      return std::nullopt;
  }
}

herr_t add_attribute(hid_t dataset, const char* name, const H5A_info_t*, void* attributes) {
  const Hdf5Handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.good()) return 0;
  if (auto value = read_attribute(attribute))
    static_cast<Hdf5Attributes*>(attributes)->emplace(name, std::move(*value));
  return 0;
}

// False for another byte order, for example.
bool has_same_bytes(hid_t type, at::ScalarType dtype) {
  const Hdf5Handle memory_type = hdf5_type(dtype);
  if (H5Tget_class(type) == H5T_ENUM && dtype != at::kBool)
    return has_same_bytes(Hdf5Handle(H5Tget_super(type), H5Tclose), dtype);
  return H5Tequal(type, memory_type) > 0;
}

// Links lead to other files.
unsigned long file_number(hid_t object) {
  H5O_info_t info{};
  return H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0 ? 0 : info.fileno;
}

std::optional<uint64_t> plain_offset(hid_t dataset, unsigned long file) {
  if (file_number(dataset) != file) return std::nullopt;
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(list) != H5D_CONTIGUOUS || H5Pget_external_count(list) != 0) return std::nullopt;
  const haddr_t offset = H5Dget_offset(dataset);
  return offset == HADDR_UNDEF ? std::nullopt : std::optional<uint64_t>(offset);
}

void name_values(hid_t type, Hdf5Attributes& attributes) {
  const std::string names = names_of_values(type);
  if (names.empty()) return;
  attributes.emplace("class_names", names);
  attributes.emplace("num_classes", int64_t{H5Tget_nmembers(type)});
}

// False if it has no numbers.
bool add_dataset(hid_t dataset, const std::string& path, unsigned long file,
                 std::vector<Hdf5Entry>& datasets) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  const auto dtype = dtype_of_hdf5(type);
  if (!dtype) return false;
  const bool same_bytes = has_same_bytes(type, *dtype);
  Hdf5Entry entry{path, shape_of_hdf5(space), *dtype,
                  same_bytes ? plain_offset(dataset, file) : std::nullopt};
  entry.storage = storage_of(dataset, entry.shape, c10::elementSize(*dtype));
  entry.same_bytes = same_bytes;
  H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, &entry.attributes);
  name_values(type, entry.attributes);
  datasets.push_back(std::move(entry));
  return true;
}

// "; did you mean digits.h5?"
std::string similar_file(const std::filesystem::path& path) {
  constexpr std::size_t kMostFiles = 1000;
  const std::string name = path.filename().string();
  std::vector<std::string> names;
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (auto file = std::filesystem::directory_iterator(folder, error);
       !error && file != std::filesystem::directory_iterator() && names.size() < kMostFiles;
       file.increment(error))
    names.push_back(file->path().filename().string());
  const std::string near = nearest_name(name, names);
  return !near.empty() && similar_name(near, name) ? "; did you mean " + near + "?" : "";
}

std::string why_not_opened(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "no such file" + similar_file(path);
  if (std::filesystem::is_directory(path, error)) return "is a folder, not an HDF5 file";
  if (const std::string problem = RegularFile(path).problem(); !problem.empty()) return problem;
  return "cannot be read as an HDF5 file: " + hdf5_error();
}

// Selects rows [first, first + count) of a dataset's space.
void select_rows(hid_t space, const Shape& shape, int64_t first, int64_t count) {
  std::vector<hsize_t> start(shape.size(), 0), extent(shape.begin(), shape.end());
  start[0] = static_cast<hsize_t>(first);
  extent[0] = static_cast<hsize_t>(count);
  hdf5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) >= 0,
             "H5Sselect_hyperslab");
}

at::Tensor empty_tensor(const std::string& path, const Hdf5Entry& dataset, const Shape& shape) try {
  return at::empty(shape, dataset.dtype);
} catch (const c10::Error& error) {
  throw_run_error(error, path + ": dataset '" + dataset.path + "' cannot be read: ");
}

size_t row_numbers(const Shape& shape) {
  return static_cast<size_t>(c10::multiply_integers(shape.begin() + 1, shape.end()));
}

void check_rows(const Hdf5Entry& dataset, int64_t first, int64_t count) {
  TUTTI_ASSERT(!dataset.shape.empty(), dataset.path + " is a scalar and has no rows");
  TUTTI_ASSERT(first >= 0 && count >= 0 && first + count <= dataset.shape[0],
               dataset.path + ": rows " + std::to_string(first) + " + " + std::to_string(count) + " of " +
                   std::to_string(dataset.shape[0]));
}

}  // namespace

struct Hdf5File::Opened {
  Hdf5Handle file;
  std::set<std::string> sound;  // datasets that were checked

  Hdf5Handle dataset(const std::string& path, const std::string& name) {
    Hdf5Handle handle = open_dataset(file, path, name);
    if (!sound.contains(name)) tutti::require_sound(handle, name);
    sound.insert(name);
    return handle;
  }
};

Hdf5File::Hdf5File(const std::string& path, SoftLinks links)
    : path_(path), opened_(std::make_unique<Opened>()) {
  const Hdf5Session session;
  opened_->file = open_hdf5(path);
  if (!opened_->file.good()) throw UserError({path}, why_not_opened(path));
  const Hdf5Handle root(H5Gopen2(opened_->file, "/", H5P_DEFAULT), H5Gclose);
  const unsigned long file = file_number(root);
  visit_datasets(opened_->file, links, [&](const std::string& name, hid_t dataset) {
    if (!is_printable(name)) return;
    if (dataset < 0 || !add_dataset(dataset, name, file, datasets_)) others_.push_back(name);
  });
}

Hdf5File::~Hdf5File() {
  const Hdf5Session session;
  opened_.reset();
}

const Hdf5Entry* Hdf5File::find(const std::string& dataset) const {
  const auto entry =
      std::find_if(datasets_.begin(), datasets_.end(), [&](const auto& d) { return d.path == dataset; });
  return entry == datasets_.end() ? nullptr : &*entry;
}

const Hdf5Entry& Hdf5File::at(const std::string& dataset) const {
  if (const Hdf5Entry* entry = find(dataset)) return *entry;
  throw UserError({path_}, "no dataset '" + dataset + "'; there is " + names());
}

std::string Hdf5File::names() const {
  std::string names;
  for (size_t i = 0; i < std::min(datasets_.size(), kNamesInMessage); ++i) {
    names += (i > 0 ? ", " : "") + datasets_[i].path;
  }
  if (datasets_.size() > kNamesInMessage) names += ", ...";
  return datasets_.empty() ? "none" : names;
}

std::string Hdf5File::why_not_listed(const std::string& dataset) const {
  const auto arrays = list_hdf5(path_);
  const auto array = std::ranges::find(arrays, dataset, &ListedArray::path);
  if (array == arrays.end()) return "";
  {
    const Hdf5Session session;
    if (const std::string link = dead_link_text(opened_->file, dataset); !link.empty()) return "is " + link;
  }
  if (array->dtype == ListedArray::kUnreadable)
    return "cannot be opened by HDF5 " + hdf5_version() +
           ": a link that leads nowhere, or written for newer releases (h5py's libver = \"latest\")";
  return "is " + array->description() + ", and only integers, floats and booleans are read" +
         (array->dtype == "text" ? ": write classes as integers, or as an enumeration" : "");
}

void Hdf5File::require_sound(const std::string& dataset) const {
  const Hdf5Session session;
  opened_->dataset(path_, dataset);
}

at::Tensor Hdf5File::read(const std::string& dataset) const {
  const Hdf5Entry& entry = at(dataset);
  require_sound(dataset);
  at::Tensor tensor = empty_tensor(path_, entry, entry.shape);
  if (entry.storage.decodable) {
    decode_rows(entry, 0, entry.shape[0], static_cast<std::byte*>(tensor.mutable_data_ptr()));
    return tensor;
  }
  const Hdf5Session session;
  const Hdf5Handle handle = opened_->dataset(path_, dataset), type = hdf5_type(entry.dtype);
  if (H5Dread(handle, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.mutable_data_ptr()) < 0) {
    throw UserError({path_}, "dataset '" + dataset + "' cannot be read: " + hdf5_error());
  }
  return tensor;
}

at::Tensor Hdf5File::read_range(const std::string& dataset, int64_t first, int64_t count) const {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = first + i;
  return read_rows(dataset, rows);
}

void Hdf5File::read_rows_into(const std::string& dataset, int64_t first, int64_t count, std::byte* to) const {
  const Hdf5Entry& entry = at(dataset);
  check_rows(entry, first, count);
  if (entry.storage.decodable) return decode_rows(entry, first, count, to);
  const Hdf5Session session;
  const Hdf5Handle handle = opened_->dataset(path_, dataset), type = hdf5_type(entry.dtype),
                   space = hdf5_space(entry.shape);
  Shape shape = entry.shape;
  shape[0] = count;
  const Hdf5Handle memory = hdf5_space(shape);
  select_rows(space, entry.shape, first, count);
  if (H5Dread(handle, type, memory, space, H5P_DEFAULT, to) < 0)
    throw UserError({path_}, "dataset '" + dataset + "', row " + std::to_string(first) +
                                 " cannot be read: " + hdf5_error());
}

void Hdf5File::decode_rows(const Hdf5Entry& entry, int64_t first, int64_t count, std::byte* to) const {
  const ChunkedArray array{entry.shape, entry.storage};
  std::vector<EncodedChunk> chunks;
  {
    const Hdf5Session session;
    chunks = read_encoded(opened_->dataset(path_, entry.path), array, first, count);
  }
  for (const EncodedChunk& chunk : chunks)
    if (!decode_chunk(array, chunk, first, count, to))
      throw UserError({path_}, "dataset '" + entry.path + "', row " + std::to_string(chunk.offset[0]) +
                                   " cannot be read: damaged data");
  if (!entry.same_bytes) convert(entry, static_cast<size_t>(count) * row_numbers(entry.shape), to);
}

void Hdf5File::convert(const Hdf5Entry& entry, size_t numbers, std::byte* to) const {
  const Hdf5Session session;
  const Hdf5Handle handle = opened_->dataset(path_, entry.path), type(H5Dget_type(handle), H5Tclose),
                   memory_type = hdf5_type(entry.dtype);
  if (H5Tconvert(type, memory_type, numbers, to, nullptr, H5P_DEFAULT) < 0)
    throw UserError({path_}, "dataset '" + entry.path + "' cannot be converted: " + hdf5_error());
}

at::Tensor Hdf5File::read_rows(const std::string& dataset, std::span<const int64_t> rows) const {
  const Hdf5Entry& entry = at(dataset);
  Shape shape = entry.shape;
  check_rows(entry, 0, 0);
  require_sound(dataset);
  shape[0] = static_cast<int64_t>(rows.size());
  at::Tensor tensor = empty_tensor(path_, entry, shape);
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  const size_t row_bytes = rows.empty() ? 0 : tensor.nbytes() / rows.size();
  for (size_t i = 0; i < rows.size();) {  // one call for each run of neighbours
    size_t run = 1;
    while (i + run < rows.size() && rows[i + run] == rows[i] + static_cast<int64_t>(run)) ++run;
    read_rows_into(dataset, rows[i], static_cast<int64_t>(run), to + i * row_bytes);
    i += run;
  }
  return tensor;
}

}  // namespace tutti
