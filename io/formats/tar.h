#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

// A file in a tar file: its name, and where its bytes are.
struct TarMember {
  std::string name;
  uint64_t first = 0, bytes = 0;
};

// Reads the files of a tar file (ustar, with GNU's and pax's long names and sizes) file by file. Errors are
// UserErrors without the file's name, which name the byte at which the tar file is damaged or cut.
class TarReader {
 public:
  // Returns the next bytes of the tar file, fewer at its end. They last until the next call.
  using Read = std::function<std::span<const std::byte>(uint64_t bytes)>;

  // `joined`: tar files one behind the other, parted by blocks of zeros; else a block of zeros is the end.
  explicit TarReader(Read read, bool joined = false) : read_(std::move(read)), joined_(joined) {}

  // The next file, nothing at the end.
  std::optional<TarMember> next();
  // False behind the end of a tar file that lacks its last blocks of zeros.
  bool has_end() const { return has_end_; }
  // Of that file; last until next() is called.
  std::span<const std::byte> data() const { return data_; }

 private:
  // The fields of a pax header or GNU's long name for the next file.
  struct Overrides {
    std::optional<std::string> name;
    std::optional<uint64_t> size;
  };
  static void read_pax(std::string_view records, uint64_t at, Overrides& next);
  std::span<const std::byte> read(uint64_t bytes);

  Read read_;
  bool joined_;
  uint64_t at_ = 0;
  uint64_t filling_ = 0;  // bytes up to the next header
  bool has_end_ = true;
  std::string last_;  // name of the last file
  std::span<const std::byte> data_;
};

// Calls `use` for each file of a tar file, in their order. False if the mark of its end is missing.
bool read_tar(std::span<const std::byte> tar, const std::function<void(const TarMember& member)>& use);

}  // namespace tutti
