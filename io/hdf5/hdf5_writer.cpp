#include "io/hdf5/hdf5_writer.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>

#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/hdf5_types.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

// Hashes and writes a file in chunks that may bypass the system's cache (WritableFile::write_at): it is not
// read soon, and its pages would cost the training time and memory.
class HashingFile {
 public:
  HashingFile(Disk& disk, const std::string& path)
      : file_(disk.open(path, true)), chunk_(static_cast<std::byte*>(std::aligned_alloc(kPage, kChunk))) {
    if (!chunk_) throw std::bad_alloc();
  }

  uint64_t bytes() const { return written_ + filled_; }

  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kChunk - filled_);
      std::memcpy(chunk_.get() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == kChunk) flush();
    }
  }

  uint64_t finish() {
    flush();
    file_->sync();
    file_->close();
    return hash_.value();
  }

 private:
  static constexpr size_t kPage = 4096, kChunk = size_t{1} << 20;

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  void flush() {
    if (filled_ == 0) return;
    const std::span<const std::byte> bytes(chunk_.get(), filled_);
    hash_.add(bytes);
    file_->write_at(written_, bytes);
    written_ += filled_;
    filled_ = 0;
  }

  std::unique_ptr<WritableFile> file_;
  StreamedHash hash_;
  std::unique_ptr<std::byte, Free> chunk_;
  size_t filled_ = 0;
  uint64_t written_ = 0;
};

Hdf5Handle create_file(Hdf5Memory& memory) {
  const Hdf5Handle access = memory.access_list();
  // Aligns data for loads from a mapped file; small arrays and headers are packed.
  hdf5_check(H5Pset_alignment(access, 512, 64) >= 0, "H5Pset_alignment");
  Hdf5Handle file(H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  hdf5_check(file.good(), "H5Fcreate");
  return file;
}

Hdf5Handle intermediate_groups() {
  Hdf5Handle list(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  hdf5_check(H5Pset_create_intermediate_group(list, 1) >= 0, "H5Pset_create_intermediate_group");
  return list;
}

// No time stamps, so that the same arrays give the same bytes.
Hdf5Handle creation_list() {
  Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  hdf5_check(H5Pset_obj_track_times(list, 0) >= 0, "H5Pset_obj_track_times");
  return list;
}

Hdf5Handle create_dataset(hid_t file, const std::string& path, at::ScalarType dtype, const Shape& shape,
                          hid_t list) {
  const Hdf5Handle type = hdf5_type(dtype), space = hdf5_space(shape), links = intermediate_groups();
  Hdf5Handle dataset(H5Dcreate2(file, path.c_str(), type, space, links, list, H5P_DEFAULT), H5Dclose);
  hdf5_check(dataset.good(), path.c_str());
  return dataset;
}

void write_attribute(hid_t dataset, const std::string& name, hid_t type, const void* value) {
  const Hdf5Handle space = hdf5_space({});
  const Hdf5Handle attribute(H5Acreate2(dataset, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  hdf5_check(attribute.good() && H5Awrite(attribute, type, value) >= 0, name.c_str());
}

void write_attribute(hid_t dataset, const std::string& name, const Hdf5Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    write_attribute(dataset, name, H5T_STD_I64LE, integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    write_attribute(dataset, name, H5T_IEEE_F64LE, number);
  } else {
    const std::string& text = std::get<std::string>(value);
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    hdf5_check(H5Tset_size(type, text.size() + 1) >= 0, "H5Tset_size");
    write_attribute(dataset, name, type, text.c_str());
  }
}

// The length makes the concatenation of texts unambiguous.
std::string declared(const std::string& text) { return std::to_string(text.size()) + ":" + text; }

std::string declared(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += std::to_string(size) + ",";
  return text + "]";
}

std::string declared(const Hdf5Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return "i" + std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return "t" + declared(*text);
  return "d" + std::to_string(std::bit_cast<uint64_t>(std::get<double>(value)));
}

std::string declared(at::ScalarType dtype) { return "<" + std::to_string(static_cast<int>(dtype)) + ">"; }

std::string declared(const std::vector<Hdf5Array>& arrays) {
  std::string all;
  for (const Hdf5Array& array : arrays) {
    all += declared(array.path) + declared(array.dtype) + declared(array.shape);
    for (const auto& [name, value] : array.attributes) all += declared(name) + declared(value);
    all += ";";
  }
  return all;
}

std::string declared(const Hdf5View& view) {
  std::string all = declared(view.scalars) + ";";
  for (const Hdf5VirtualArray& array : view.arrays) {
    all += declared(array.path) + declared(array.dtype) + declared(array.shape);
    for (const auto& source : array.sources)
      all += declared(source.file) + declared(source.offset) + declared(source.extent);
    all += ";";
  }
  for (const auto& [from, to] : view.links) all += declared(from) + declared(to);
  return all;
}

// Allocates the arrays' data in the file, and returns their offsets.
std::vector<uint64_t> lay_out(hid_t file, const std::vector<Hdf5Array>& arrays) {
  const Hdf5Handle list = creation_list();
  hdf5_check(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0, "H5Pset_alloc_time");
  hdf5_check(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0, "H5Pset_fill_time");
  std::vector<uint64_t> offsets;
  for (const Hdf5Array& array : arrays) {
    const Hdf5Handle dataset = create_dataset(file, array.path, array.dtype, array.shape, list);
    for (const auto& [name, value] : array.attributes) write_attribute(dataset, name, value);
    offsets.push_back(c10::multiply_integers(array.shape) == 0 ? 0 : H5Dget_offset(dataset));
  }
  return offsets;
}

void append_own_bytes(const Hdf5Memory& memory, uint64_t end, HashingFile& file) {
  std::vector<std::byte> bytes(end - file.bytes());
  memory.read(file.bytes(), bytes);
  file.append(bytes);
}

std::span<const std::byte> bytes_of(const Hdf5Array& array) {
  TUTTI_ASSERT(array.tensor.defined() && array.tensor.is_contiguous() &&
                   array.tensor.scalar_type() == array.dtype &&
                   array.tensor.numel() == c10::multiply_integers(array.shape),
               array.path + ": the tensor does not fit its declaration");
  return {static_cast<const std::byte*>(array.tensor.const_data_ptr()), array.tensor.nbytes()};
}

std::string escape_percent(
    const std::string& path) {  // "%" begins a pattern in source names of virtual datasets
  std::string escaped;
  for (const char letter : path) escaped += letter == '%' ? std::string("%%") : std::string(1, letter);
  return escaped;
}

void add_source(hid_t list, const Hdf5VirtualArray& array, const Hdf5VirtualArray::Source& source) {
  const Hdf5Handle whole = hdf5_space(array.shape), piece = hdf5_space(source.extent);
  const std::vector<hsize_t> offset(source.offset.begin(), source.offset.end());
  const std::vector<hsize_t> extent(source.extent.begin(), source.extent.end());
  hdf5_check(H5Sselect_hyperslab(whole, H5S_SELECT_SET, offset.data(), nullptr, extent.data(), nullptr) >= 0,
             array.path.c_str());
  hdf5_check(H5Pset_virtual(list, whole, escape_percent(source.file).c_str(),
                            escape_percent(array.path).c_str(), piece) >= 0,
             array.path.c_str());
}

void create_virtual(hid_t file, const Hdf5VirtualArray& array) {
  const Hdf5Handle list = creation_list();
  if (at::isFloatingType(array.dtype)) {
    const double nan = std::nan("");
    hdf5_check(H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &nan) >= 0, "H5Pset_fill_value");
  }
  for (const auto& source : array.sources) {
    if (c10::multiply_integers(source.extent) > 0) add_source(list, array, source);
  }
  create_dataset(file, array.path, array.dtype, array.shape, list);
}

void create_soft_link(hid_t file, const std::string& path, const std::string& target) {
  const Hdf5Handle groups = intermediate_groups();
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) return;  // a parameter with the name of a group
  hdf5_check(H5Lcreate_soft(("/" + target).c_str(), file, path.c_str(), groups, H5P_DEFAULT) >= 0,
             path.c_str());
}

std::vector<uint64_t> lay_out(hid_t file, const Hdf5View& view) {
  std::vector<uint64_t> offsets = lay_out(file, view.scalars);
  for (const Hdf5VirtualArray& array : view.arrays) create_virtual(file, array);
  for (const auto& [path, target] : view.links) create_soft_link(file, path, target);
  return offsets;
}

// The layout of a file with these declarations: the cached one if equal.
template <class Content>
Hdf5Layout laid_out(const Content& content, Hdf5Layout* last) {
  std::string declared = tutti::declared(content);
  if (last && last->memory && last->declared == declared) return *last;
  const auto memory = std::make_shared<Hdf5Memory>();
  const Hdf5Session session;
  std::vector<uint64_t> offsets = lay_out(create_file(*memory), content);
  Hdf5Layout layout{std::move(declared), memory, std::move(offsets)};
  if (last) *last = layout;
  return layout;
}

Hdf5Written write_laid_out(Disk& disk, const std::string& path, const Hdf5Layout& layout,
                           const std::vector<Hdf5Array>& arrays) {
  Hdf5Written written{0, 0, layout.offsets};
  std::vector<size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return written.offsets[a] < written.offsets[b]; });
  HashingFile file(disk, path);
  for (const size_t i : order) {
    if (c10::multiply_integers(arrays[i].shape) == 0) continue;
    append_own_bytes(*layout.memory, written.offsets[i], file);
    file.append(bytes_of(arrays[i]));
  }
  append_own_bytes(*layout.memory, layout.memory->bytes(), file);
  written.bytes = file.bytes();
  written.hash = file.finish();
  return written;
}

}  // namespace

Hdf5Array hdf5_array(std::string path, const at::Tensor& tensor, Hdf5Attributes attributes) {
  return {std::move(path), tensor.sizes().vec(), tensor.scalar_type(), tensor, std::move(attributes)};
}

Hdf5Written write_hdf5(Disk& disk, const std::string& path, const std::vector<Hdf5Array>& arrays,
                       Hdf5Layout* last) {
  return write_laid_out(disk, path, laid_out(arrays, last), arrays);
}

Hdf5Written write_hdf5_view(Disk& disk, const std::string& path, const Hdf5View& view, Hdf5Layout* last) {
  return write_laid_out(disk, path, laid_out(view, last), view.scalars);
}

}  // namespace tutti
