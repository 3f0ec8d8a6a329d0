#include "io/hdf5/hdf5_memory.h"

#include <algorithm>
#include <cstring>

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace tutti {
namespace {

// An open file. The driver interface requires libhdf5's fields first.
struct OpenFile {
  H5FD_t library;
  Hdf5Memory* memory;
  haddr_t allocated;
};

OpenFile& open_file(const H5FD_t* file) { return *reinterpret_cast<OpenFile*>(const_cast<H5FD_t*>(file)); }

H5FD_t* open_memory(const char*, unsigned, hid_t access, haddr_t) {
  const auto* memory = static_cast<Hdf5Memory* const*>(H5Pget_driver_info(access));
  if (memory == nullptr) return nullptr;
  return &(new OpenFile{{}, *memory, 0})->library;
}

herr_t close_memory(H5FD_t* file) {
  delete &open_file(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return open_file(file).allocated; }

herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  open_file(file).allocated = end;
  return 0;
}

haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return open_file(file).memory->bytes(); }

herr_t read_memory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
  open_file(file).memory->read(offset, {static_cast<std::byte*>(to), size});
  return 0;
}

herr_t write_memory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, const void* from) {
  open_file(file).memory->write(offset, {static_cast<const std::byte*>(from), size});
  return 0;
}

herr_t truncate_memory(H5FD_t* file, hid_t, hbool_t) {
  open_file(file).memory->resize(open_file(file).allocated);
  return 0;
}

H5FD_class_t memory_driver() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(511);  // the last value of the range for private use
#endif
  driver.name = "tutti_memory";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Hdf5Memory*);
  driver.open = open_memory;
  driver.close = close_memory;
  driver.query = query;
  driver.get_eoa = get_allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = get_end;
  driver.read = read_memory;
  driver.write = write_memory;
  driver.truncate = truncate_memory;
  const H5FD_mem_t one_list[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(one_list), std::end(one_list), driver.fl_map);
  return driver;
}

// Never unregistered: libhdf5 1.10 uses a driver's class after freeing it when it closes the last file.
hid_t memory_driver_id() {
  static const hid_t id = [] {
    const H5FD_class_t driver = memory_driver();
    return H5FDregister(&driver);
  }();
  hdf5_check(id >= 0, "H5FDregister");
  return id;
}

}  // namespace

Hdf5Handle Hdf5Memory::access_list() {
  const hid_t id = memory_driver_id();
  Hdf5Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  Hdf5Memory* const self = this;
  hdf5_check(H5Pset_driver(list, id, &self) >= 0, "H5Pset_driver");
  return list;
}

void Hdf5Memory::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(to.size(), kPageBytes - within);
    const auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end()) {
      std::memset(to.data(), 0, count);
    } else {
      std::memcpy(to.data(), page->second.data() + within, count);
    }
    offset += count;
    to = to.subspan(count);
  }
}

void Hdf5Memory::write(uint64_t offset, std::span<const std::byte> from) {
  bytes_ = std::max(bytes_, offset + from.size());
  while (!from.empty()) {
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(from.size(), kPageBytes - within);
    Page& page = pages_.try_emplace(offset / kPageBytes, Page{}).first->second;
    std::memcpy(page.data() + within, from.data(), count);
    offset += count;
    from = from.subspan(count);
  }
}

}  // namespace tutti
