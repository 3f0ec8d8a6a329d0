#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tutti {

// A file in a tar file: its name, and where its bytes are.
struct TarMember {
  std::string name;
  uint64_t first = 0, bytes = 0;
};

// Calls `use` for each file of a tar file (ustar, with GNU's and pax's long names and sizes), in their order.
// Throws UserError, without the file's name, that names the byte at which the tar file is damaged or cut.
void read_tar(std::span<const std::byte> tar, const std::function<void(const TarMember& member)>& use);

}  // namespace tutti
