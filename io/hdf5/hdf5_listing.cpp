#include "io/hdf5/hdf5_listing.h"

#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "io/hdf5/hdf5_chunks.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_open.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

std::string member_name(hid_t type, unsigned index) {
  char* const name = H5Tget_member_name(type, index);
  const std::string copy = name == nullptr ? "" : name;
  H5free_memory(name);
  return copy;
}

// As h5py writes them.
bool is_boolean(hid_t type) {
  return H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1 && member_name(type, 0) == "FALSE" &&
         member_name(type, 1) == "TRUE";
}

bool is_complex(hid_t type) {
  return H5Tget_nmembers(type) == 2 && member_name(type, 0) == "r" && member_name(type, 1) == "i";
}

void read_type(hid_t type, ListedArray& array) {
  const std::size_t bytes = H5Tget_size(type);
  const std::string bits = std::to_string(8 * bytes);
  const bool is_read = bytes <= 8 && std::has_single_bit(bytes);  // by training
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      if (is_read) array.numbers = ListedArray::Numbers::kIntegers;
      array.dtype = (H5Tget_sign(type) == H5T_SGN_2 ? "int" : "uint") + bits;
      return;
    case H5T_FLOAT:
      if (is_read) array.numbers = ListedArray::Numbers::kFloats;
      array.dtype = "float" + bits;
      return;
    case H5T_ENUM:
      read_type(Hdf5Handle(H5Tget_super(type), H5Tclose), array);
      if (!is_boolean(type)) return;
      array.numbers = ListedArray::Numbers::kBooleans;
      array.dtype = "bool";
      return;
    case H5T_STRING:
      array.dtype = "text";
      return;
    case H5T_COMPOUND:
      array.dtype = is_complex(type) ? "complex numbers" : "compound";
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
  const Hdf5Handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), H5Aclose);
  const Hdf5Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  int64_t value = 0;
  const bool is_integer = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 1;
  return is_integer && H5Aread(attribute, H5T_NATIVE_INT64, &value) >= 0 ? value : 0;
}

ListedArray listed(const std::string& path, hid_t dataset) {
  if (!is_printable(path)) return {.path = on_one_line(path), .dtype = ListedArray::kUnnamable};
  ListedArray array{.path = path};
  if (dataset < 0) {
    array.dtype = ListedArray::kUnreadable;
    return array;
  }
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  read_type(type, array);
  array.shape = shape_of_hdf5(space);
  array.num_classes = integer_attribute(dataset, "num_classes");
  return array;
}

Hdf5Handle open_file(const std::string& path) {
  Hdf5Handle file = open_hdf5(path);
  if (file.good()) return file;
  const std::string problem = RegularFile(path).problem();
  throw UserError({path}, "cannot be read as an HDF5 file" + (problem.empty() ? "" : ": " + problem));
}

// The first rows of a dataset as libhdf5 reads them.
bool read_rows(hid_t dataset, const std::vector<int64_t>& shape, int64_t rows, std::vector<double>& values) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> extent(shape.begin(), shape.end());
  extent[0] = static_cast<hsize_t>(rows);
  const hsize_t count = values.size();
  const Hdf5Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  return H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data()) >= 0;
}

// The same of chunks that are decoded here.
bool decode_rows(hid_t dataset, const ChunkedArray& array, int64_t rows, std::vector<double>& values) {
  auto* const to = reinterpret_cast<std::byte*>(values.data());
  for (const EncodedChunk& chunk : read_encoded(dataset, array, 0, rows))
    if (!decode_chunk(array, chunk, 0, rows, to)) return false;
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  return H5Tconvert(type, H5T_NATIVE_DOUBLE, values.size(), to, nullptr, H5P_DEFAULT) >= 0;
}

}  // namespace

int64_t ListedArray::row_size() const {
  if (shape.empty()) return 0;
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

std::string ListedArray::description() const {
  std::string sizes;
  for (const int64_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return dtype == kUnreadable || dtype == kUnnamable ? dtype : dtype + " [" + sizes + ']';
}

bool is_hdf5(const std::string& path) {
  if (!RegularFile(path).problem().empty()) return false;
  const Hdf5Session session;
  return H5Fis_hdf5(path.c_str()) > 0;
}

std::vector<ListedArray> list_hdf5(const std::string& path) {
  const Hdf5Session session;
  const Hdf5Handle file = open_file(path);
  std::vector<ListedArray> arrays;
  visit_datasets(file, SoftLinks::kFollowed,
                 [&](const std::string& name, hid_t object) { arrays.push_back(listed(name, object)); });
  return arrays;
}

std::vector<double> first_rows(const std::string& path, const ListedArray& array, int64_t rows) {
  const Hdf5Session session;
  const Hdf5Handle file = open_file(path), dataset = open_dataset(file, path, array.path);
  require_sound(dataset, array.path);
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Storage storage = storage_of(dataset, array.shape, H5Tget_size(type));
  rows = std::min(rows, array.rows());
  if (rows <= 0) return {};
  std::vector<double> values(static_cast<std::size_t>(array.row_size() * rows));
  const bool is_read = storage.decodable ? decode_rows(dataset, {array.shape, storage}, rows, values)
                                         : read_rows(dataset, array.shape, rows, values);
  if (!is_read) throw UserError({path}, "array '" + array.path + "' cannot be read");
  return values;
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(release);
}

}  // namespace tutti
