#include "tests/io/hdf5/chunked_file.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace tutti {
namespace {

hid_t type_of(const at::Tensor& values) {
  if (values.scalar_type() == at::kByte) return H5T_STD_U8LE;
  return values.scalar_type() == at::kInt ? H5T_STD_I32LE : H5T_IEEE_F32LE;
}

hid_t list_of(const ChunkedOptions& options) {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk(options.chunk.begin(), options.chunk.end());
  H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
  if (options.shuffle) H5Pset_shuffle(list);
  if (options.gzip) H5Pset_deflate(list, 4);
  if (options.checksum) H5Pset_fletcher32(list);
  return list;
}

}  // namespace

void write_chunked(const std::string& path, const std::string& dataset, const at::Tensor& values,
                   const ChunkedOptions& options) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<hsize_t> dims(values.sizes().begin(), values.sizes().end()), most(dims), start(dims.size(), 0);
  if (options.may_grow) most.assign(dims.size(), H5S_UNLIMITED);
  const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), most.data());
  const hid_t list = list_of(options), type = type_of(values);
  const hid_t set = H5Dcreate2(file, dataset.c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  if (options.rows_written >= 0) dims[0] = static_cast<hsize_t>(options.rows_written);
  const hid_t memory = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, dims.data(), nullptr);
  const at::Tensor dense = values.contiguous();
  const herr_t written = H5Dwrite(set, type, memory, space, H5P_DEFAULT, dense.const_data_ptr());
  H5Sclose(memory);
  H5Dclose(set);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  if (written < 0) throw std::runtime_error(path + " could not be written");
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
