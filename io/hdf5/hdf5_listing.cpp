#include "io/hdf5/hdf5_listing.h"

#include <hdf5.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "runtime/error.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

constexpr int kDeepestGroup = 32;  // hard links can make cycles of groups

// An identifier of libhdf5, closed by its own function.
class Identifier {
 public:
  Identifier(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Identifier() {
    if (good()) close_(id_);
  }
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;
  bool good() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // NOLINT: implicit, for libhdf5's calls

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void read_type(hid_t type, ListedArray& array) {
  const std::string bits = std::to_string(8 * H5Tget_size(type));
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      array.numbers = ListedArray::Numbers::kIntegers;
      array.dtype = (H5Tget_sign(type) == H5T_SGN_2 ? "int" : "uint") + bits;
      return;
    case H5T_FLOAT:
      array.numbers = ListedArray::Numbers::kFloats;
      array.dtype = "float" + bits;
      return;
    case H5T_ENUM:
      array.dtype = "enum";
      if (H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 1) return;
      array.numbers = ListedArray::Numbers::kBooleans;
      array.dtype = "bool";
      return;
    case H5T_STRING:
      array.dtype = "text";
      return;
    case H5T_COMPOUND:
      array.dtype = "compound";
      return;
    case H5T_VLEN:
      array.dtype = "rows of different lengths";
      return;
    default:
      array.dtype = "other";
  }
}

int64_t integer_attribute(hid_t dataset, const char* name) {
  if (H5Aexists(dataset, name) <= 0) return 0;
  const Identifier attribute(H5Aopen(dataset, name, H5P_DEFAULT), H5Aclose);
  const Identifier type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  int64_t value = 0;
  const bool is_integer = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 1;
  return is_integer && H5Aread(attribute, H5T_NATIVE_INT64, &value) >= 0 ? value : 0;
}

ListedArray listed(hid_t dataset, const std::string& path) {
  ListedArray array{.path = path};
  const Identifier type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  read_type(type, array);
  const int dims = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extent(static_cast<std::size_t>(std::max(dims, 0)));
  if (dims > 0) H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  array.shape.assign(extent.begin(), extent.end());
  array.num_classes = integer_attribute(dataset, "num_classes");
  return array;
}

std::string link_name(hid_t group, hsize_t index) {
  const ssize_t length =
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, nullptr, 0, H5P_DEFAULT);
  std::string name(static_cast<std::size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
  H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
  name.pop_back();
  return name;
}

void list_below(hid_t group, const std::string& prefix, int depth, std::vector<ListedArray>& arrays) {
  H5G_info_t info{};
  if (depth > kDeepestGroup || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = link_name(group, i);
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type == H5L_TYPE_SOFT) continue;
    const Identifier object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    const H5I_type_t kind = object.good() ? H5Iget_type(object) : H5I_BADID;
    if (kind == H5I_BADID) arrays.push_back({.path = prefix + name, .dtype = ListedArray::kUnreadable});
    if (kind == H5I_DATASET) arrays.push_back(listed(object, prefix + name));
    if (kind == H5I_GROUP && link.type == H5L_TYPE_HARD)
      list_below(object, prefix + name + '/', depth + 1, arrays);
  }
}

// The file, open for reading and without a lock, which file systems of clusters often do not have.
hid_t open_file(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Identifier access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);
  const std::string problem = RegularFile(path).problem();
  if (!problem.empty()) throw UserError(path + ": cannot be read as an HDF5 file: " + problem);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (file < 0) throw UserError(path + ": cannot be read as an HDF5 file");
  return file;
}

}  // namespace

int64_t ListedArray::row_size() const {
  if (shape.empty()) return 0;
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

std::string ListedArray::description() const {
  std::string sizes;
  for (const int64_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return dtype + " [" + sizes + ']';
}

bool is_hdf5(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  return H5Fis_hdf5(path.c_str()) > 0;
}

std::vector<ListedArray> list_hdf5(const std::string& path) {
  const Identifier file(open_file(path), H5Fclose);
  const Identifier root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  std::vector<ListedArray> arrays;
  list_below(root, "", 0, arrays);
  return arrays;
}

std::vector<double> first_rows(const std::string& path, const ListedArray& array, int64_t rows) {
  const Identifier file(open_file(path), H5Fclose);
  const Identifier dataset(H5Dopen2(file, array.path.c_str(), H5P_DEFAULT), H5Dclose);
  const Identifier space(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> start(array.shape.size(), 0), extent(array.shape.begin(), array.shape.end());
  extent[0] = static_cast<hsize_t>(std::min(rows, array.rows()));
  std::vector<double> values(static_cast<std::size_t>(array.row_size()) * extent[0]);
  const hsize_t count = values.size();
  const Identifier memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  if (H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data()) < 0)
    throw UserError(path + ": array '" + array.path + "' cannot be read");
  return values;
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(release);
}

}  // namespace tutti
