#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tutti {

struct MappedRange;

// A whole file, mapped for reading. Throws UserError with the file if opening fails. If the file is truncated
// during a read, the process ends with exit code 1 and an error, printed once for all ranks.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::string path_;
  std::string printable_path_;  // for a handler of signals
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange* range_ = nullptr;
};

// A part of an open file, mapped to be written: bytes `offset` (whole pages) to offset + size, which must
// exist. If the file is truncated or becomes read-only, the process continues: later writes go to memory that
// belongs to no file.
class WritableMapping {
 public:
  WritableMapping(int descriptor, uint64_t offset,
                  size_t size);  // data() is null, and errno set, after a failure
  ~WritableMapping();
  WritableMapping(const WritableMapping&) = delete;
  WritableMapping& operator=(const WritableMapping&) = delete;

  uint8_t* data() const { return data_; }
  bool detached() const;  // whether bytes went to memory instead of the file

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  MappedRange* range_ = nullptr;
};

}  // namespace tutti
