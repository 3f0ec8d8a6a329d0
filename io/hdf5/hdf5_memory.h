#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "io/hdf5/hdf5_handle.h"

namespace tutti {

// A file of libhdf5 in sparse pages of memory: datasets that are allocated but not filled take no memory. So
// the layout of any file takes a few KB; the caller writes the bytes to disk. Needs a Hdf5Session.
class Hdf5Memory {
 public:
  // An access list that makes H5Fcreate write to this object. The object must outlive the file.
  Hdf5Handle access_list();

  uint64_t bytes() const { return bytes_; }  // size of the file; final once the file is closed
  // Reads zeros where nothing was written.
  void read(uint64_t offset, std::span<std::byte> to) const;
  void write(uint64_t offset, std::span<const std::byte> from);
  void resize(uint64_t bytes) { bytes_ = bytes; }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;
  std::map<uint64_t, Page> pages_;  // by offset / kPageBytes
  uint64_t bytes_ = 0;
};

}  // namespace tutti
