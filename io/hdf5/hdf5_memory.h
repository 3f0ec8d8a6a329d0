#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "io/hdf5/hdf5_handle.h"

namespace tutti {

// What libhdf5 writes into a file that it believes to be making, kept in sparse pages of memory: datasets
// that are allocated but never filled take none. So the layout of a file of any size is found out in a few
// KB, and its bytes reach the disk by whatever way the caller likes. Use it within a Hdf5Session.
class Hdf5Memory {
 public:
  // An access list for H5Fcreate under which the file is this object, which must outlive the file.
  Hdf5Handle access_list();

  uint64_t bytes() const { return bytes_; }  // of the file; final once it has been closed
  // The bytes at `offset`; zeros where nothing was written.
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
