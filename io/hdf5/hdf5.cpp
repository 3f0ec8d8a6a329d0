#include "io/hdf5/hdf5.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "io/hdf5/hdf5_chunks.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_listing.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

constexpr int kMaxGroupDepth = 32;  // hard links can make cycles of groups
constexpr size_t kNamesInMessage = 12;

std::string name_of_link(hid_t group, hsize_t index) {
  const ssize_t length =
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, nullptr, 0, H5P_DEFAULT);
  if (length < 0) return {};
  std::string name(static_cast<size_t>(length) + 1, '\0');
  H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
  name.pop_back();
  return name;
}

std::optional<Hdf5Attribute> read_text(hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0 || text == nullptr) return std::nullopt;
    const std::string copy = text;
    H5free_memory(text);
    return copy;
  }
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

// True if libhdf5 would find the source file of a virtual dataset. Names with patterns are not checked.
bool has_source(const std::string& path, const std::string& source) {
  if (source == "." || source.find('%') != std::string::npos || std::getenv("HDF5_VDS_PREFIX")) return true;
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(path).parent_path() / source, error) ||
         std::filesystem::exists(source, error);
}

// Throws if a source is missing: libhdf5 would read the fill value.
void require_sources(hid_t dataset, const std::string& path, const std::string& name) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  size_t count = 0;
  if (H5Pget_layout(list) != H5D_VIRTUAL || H5Pget_virtual_count(list, &count) < 0) return;
  for (size_t i = 0; i < count; ++i) {
    const ssize_t length = H5Pget_virtual_filename(list, i, nullptr, 0);
    std::string source(static_cast<size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
    H5Pget_virtual_filename(list, i, source.data(), source.size());
    source.pop_back();
    if (!has_source(path, source))
      throw UserError({path}, "dataset '" + name + "' needs the file '" + source + "', which does not exist");
  }
}

void add_dataset(hid_t dataset, const std::string& path, unsigned long file,
                 std::vector<Hdf5Entry>& datasets) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  const auto dtype = dtype_of_hdf5(type);
  if (!dtype) return;
  const bool same_bytes = has_same_bytes(type, *dtype);
  Hdf5Entry found{path, shape_of_hdf5(space), *dtype,
                  same_bytes ? plain_offset(dataset, file) : std::nullopt};
  found.storage = storage_of(dataset, found.shape, c10::elementSize(*dtype), same_bytes);
  H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, &found.attributes);
  datasets.push_back(std::move(found));
}

void list_group(hid_t group, const std::string& prefix, int depth, unsigned long file,
                std::vector<Hdf5Entry>& datasets) {
  H5G_info_t info{};
  if (depth > kMaxGroupDepth || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = name_of_link(group, i);
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type == H5L_TYPE_SOFT) continue;
    const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    const H5I_type_t kind = object.good() ? H5Iget_type(object) : H5I_BADID;
    if (kind == H5I_DATASET) add_dataset(object, prefix + name, file, datasets);
    if (kind == H5I_GROUP && link.type == H5L_TYPE_HARD)
      list_group(object, prefix + name + "/", depth + 1, file, datasets);
  }
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

herr_t query_without_accumulator(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

// The default driver without libhdf5's metadata accumulator, which reads beyond its memory if an address of a
// damaged file is near 2^64. Never unregistered, as hdf5_memory.cpp says.
hid_t careful_driver_id() {
  static const hid_t id = [] {
    H5FD_t* const file = H5FDopen("/dev/null", H5F_ACC_RDONLY, H5P_DEFAULT, HADDR_UNDEF);
    hdf5_check(file != nullptr, "H5FDopen");
    H5FD_class_t driver = *file->cls;
    H5FDclose(file);
    driver.name = "tutti_careful";
    driver.query = query_without_accumulator;
    return H5FDregister(&driver);
  }();
  hdf5_check(id >= 0, "H5FDregister");
  return id;
}

// Disables locking of read-only files: shared file systems of clusters often have no locks.
Hdf5Handle read_access() {
  Hdf5Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  hdf5_check(H5Pset_driver(list, careful_driver_id(), nullptr) >= 0, "H5Pset_driver");
  hdf5_check(H5Pset_file_locking(list, false, true) >= 0, "H5Pset_file_locking");
  return list;
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
  throw UserError({path}, "dataset '" + dataset.path + "' cannot be read: " + error.what_without_backtrace());
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

  Hdf5Handle dataset(const std::string& path, const std::string& name) const {
    Hdf5Handle handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!handle.good()) throw UserError({path}, "dataset '" + name + "' cannot be opened: " + hdf5_error());
    require_sources(handle, path, name);
    return handle;
  }
};

Hdf5File::Hdf5File(const std::string& path) : path_(path), opened_(std::make_unique<Opened>()) {
  const Hdf5Session session;
  const Hdf5Handle access = read_access();
  if (!RegularFile(path).problem().empty()) throw UserError({path}, why_not_opened(path));
  opened_->file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!opened_->file.good()) throw UserError({path}, why_not_opened(path));
  const Hdf5Handle root(H5Gopen2(opened_->file, "/", H5P_DEFAULT), H5Gclose);
  list_group(root, "", 0, file_number(root), datasets_);
}

Hdf5File::~Hdf5File() {
  const Hdf5Session session;
  opened_.reset();
}

const Hdf5Entry* Hdf5File::find(const std::string& dataset) const {
  const auto found =
      std::find_if(datasets_.begin(), datasets_.end(), [&](const auto& d) { return d.path == dataset; });
  return found == datasets_.end() ? nullptr : &*found;
}

const Hdf5Entry& Hdf5File::at(const std::string& dataset) const {
  if (const Hdf5Entry* found = find(dataset)) return *found;
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
  const Hdf5Session session;
  const auto arrays = list_hdf5(path_);
  const auto found = std::ranges::find(arrays, dataset, &ListedArray::path);
  if (found == arrays.end()) return "";
  if (found->dtype == ListedArray::kUnreadable)
    return "cannot be opened by HDF5 " + hdf5_version() +
           ": a link that leads nowhere, or written for newer releases (h5py's libver = \"latest\")";
  return "is " + found->description() + ", and only integers, floats and booleans are read";
}

at::Tensor Hdf5File::read(const std::string& dataset) const {
  const Hdf5Entry& found = at(dataset);
  at::Tensor tensor = empty_tensor(path_, found, found.shape);
  const Hdf5Session session;
  const Hdf5Handle handle = opened_->dataset(path_, dataset), type = hdf5_type(found.dtype);
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
  const Hdf5Entry& found = at(dataset);
  check_rows(found, first, count);
  if (found.storage.decodable && decode_rows(found, first, count, to)) return;
  const at::Tensor rows = read_range(dataset, first, count);
  std::memcpy(to, rows.const_data_ptr(), rows.nbytes());
}

// False if libhdf5 has to read the rows.
bool Hdf5File::decode_rows(const Hdf5Entry& found, int64_t first, int64_t count, std::byte* to) const {
  std::vector<EncodedChunk> chunks;
  {
    const Hdf5Session session;
    chunks = read_encoded(opened_->dataset(path_, found.path), found, first, count);
  }
  for (const EncodedChunk& chunk : chunks)
    if (!decode_chunk(found, chunk, first, count, to))
      throw UserError(path_ + ": dataset '" + found.path + "', row " + std::to_string(chunk.offset[0]) +
                      " cannot be read: damaged data");
  return !chunks.empty();
}

at::Tensor Hdf5File::read_rows(const std::string& dataset, std::span<const int64_t> rows) const {
  const Hdf5Entry& found = at(dataset);
  Shape shape = found.shape;
  check_rows(found, 0, 0);
  shape[0] = static_cast<int64_t>(rows.size());
  at::Tensor tensor = empty_tensor(path_, found, shape);
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  const size_t row_bytes = rows.empty() ? 0 : tensor.nbytes() / rows.size();
  const Hdf5Session session;
  const Hdf5Handle handle = opened_->dataset(path_, dataset), type = hdf5_type(found.dtype),
                   space = hdf5_space(found.shape);
  for (size_t i = 0; i < rows.size();) {  // one call for each run of neighbours
    size_t run = 1;
    while (i + run < rows.size() && rows[i + run] == rows[i] + static_cast<int64_t>(run)) ++run;
    check_rows(found, rows[i], static_cast<int64_t>(run));
    shape[0] = static_cast<int64_t>(run);
    const Hdf5Handle memory = hdf5_space(shape);
    select_rows(space, found.shape, rows[i], shape[0]);
    if (H5Dread(handle, type, memory, space, H5P_DEFAULT, to + i * row_bytes) < 0) {
      throw UserError({path_}, "dataset '" + dataset + "', row " + std::to_string(rows[i]) +
                                   " cannot be read: " + hdf5_error());
    }
    i += run;
  }
  return tensor;
}

}  // namespace tutti
