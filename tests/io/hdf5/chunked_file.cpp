#include "tests/io/hdf5/chunked_file.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace tutti {
namespace {

hid_t type_of(const at::Tensor& values) {
  if (values.scalar_type() == at::kByte) return H5T_STD_U8LE;
  return values.scalar_type() == at::kInt ? H5T_STD_I32LE : H5T_IEEE_F32LE;
}

hid_t space_of(const ChunkedOptions& options, const at::Tensor& values) {
  const Shape shape = options.claimed.empty() ? values.sizes().vec() : options.claimed;
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const std::vector<hsize_t> most(dims.size(), H5S_UNLIMITED);
  return H5Screate_simple(static_cast<int>(dims.size()), dims.data(),
                          options.may_grow ? most.data() : nullptr);
}

hid_t list_of(const ChunkedOptions& options) {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk(options.chunk.begin(), options.chunk.end());
  H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
  if (options.shuffle) H5Pset_shuffle(list);
  if (options.gzip) H5Pset_deflate(list, 4);
  if (options.checksum) H5Pset_fletcher32(list);
  if (options.fill != 0) H5Pset_fill_value(list, H5T_NATIVE_INT, &options.fill);
  return list;
}

}  // namespace

void write_chunked(const std::string& path, const std::string& dataset, const at::Tensor& values,
                   const ChunkedOptions& options) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<hsize_t> dims(values.sizes().begin(), values.sizes().end()), start(dims.size(), 0);
  const hid_t space = space_of(options, values);
  const hid_t list = list_of(options), type = type_of(values);
  const hid_t stored = options.big_endian ? H5T_IEEE_F32BE : type, groups = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(groups, 1);
  const hid_t set = H5Dcreate2(file, dataset.c_str(), stored, space, groups, list, H5P_DEFAULT);
  if (options.rows_written >= 0) dims[0] = static_cast<hsize_t>(options.rows_written);
  const hid_t memory = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, dims.data(), nullptr);
  const at::Tensor dense = values.contiguous();
  const herr_t written =
      dims[0] == 0 ? 0 : H5Dwrite(set, type, memory, space, H5P_DEFAULT, dense.const_data_ptr());
  H5Sclose(memory);
  H5Dclose(set);
  H5Pclose(groups);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  if (written < 0) throw std::runtime_error(path + " could not be written");
}

void write_encoded(const std::string& path, const std::string& dataset, int64_t row,
                   const std::string& bytes) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, dataset.c_str(), H5P_DEFAULT);
  std::vector<hsize_t> offset(H5S_MAX_RANK, 0);
  offset[0] = static_cast<hsize_t>(row);
  const herr_t written = H5Dwrite_chunk(set, H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data());
  H5Dclose(set);
  H5Fclose(file);
  if (written < 0) throw std::runtime_error(path + " could not be written");
}

// A leaf of the index has a key before each child's address of 8 bytes: size, filters, and offsets of 8 bytes
// in all dimensions and within a number.
void set_chunk_size(const std::string& path, std::size_t chunk, uint32_t bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t leaf = text.find(std::string("TREE\1\0", 6)), header = 24;
  if (leaf == text.npos) throw std::runtime_error(path + " has no index of chunks");
  std::size_t dims = 1;
  const auto number = [&](std::size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, text.data() + leaf + header + at, sizeof value);
    return value;
  };
  while (number(8 + 8 * dims) == 0) ++dims;  // up to the first child's address
  file.seekp(static_cast<std::streamoff>(leaf + header + chunk * (8 + 8 * dims + 8)));
  file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

void damage_chunk(const std::string& path, const std::string& dataset, int64_t row) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, dataset.c_str(), H5P_DEFAULT), list = H5Dget_create_plist(set);
  std::vector<hsize_t> chunk(H5S_MAX_RANK), offset(H5S_MAX_RANK, 0);
  H5Pget_chunk(list, H5S_MAX_RANK, chunk.data());
  offset[0] = static_cast<hsize_t>(row) / chunk[0] * chunk[0];
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t bytes = 0;
  H5Dget_chunk_info_by_coord(set, offset.data(), &mask, &address, &bytes);
  H5Pclose(list);
  H5Dclose(set);
  H5Fclose(file);
  if (bytes == 0) throw std::runtime_error(path + " has no such chunk");
  std::FILE* const raw = std::fopen(path.c_str(), "r+b");
  std::fseek(raw, static_cast<long>(address), SEEK_SET);
  const std::vector<char> zeros(bytes, 0);
  std::fwrite(zeros.data(), 1, zeros.size(), raw);
  std::fclose(raw);
}

}  // namespace tutti
