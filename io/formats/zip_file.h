#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/mapped_file.h"

namespace tutti {

// The members of a zip archive, as of numpy.savez: stored or deflated, also of more than 4 GiB. PKWARE's
// APPNOTE.TXT describes the format.
class ZipFile {
 public:
  struct Member {
    std::string name;
    uint64_t bytes = 0;             // uncompressed
    uint64_t compressed_bytes = 0;  // in the file
    uint64_t header = 0;            // the byte where its own header begins
    uint32_t crc = 0;
    bool deflated = false;
  };

  // Throws UserError if the directory is damaged, or if a member is encrypted or compressed by another
  // method.
  explicit ZipFile(const std::string& path);

  const std::vector<Member>& members() const { return members_; }

  // A member's bytes, and their owner: the mapped file, or memory for deflated bytes. Checks the crc of
  // deflated members. Throws UserError with archive and member.
  struct Content {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  Content read(const Member& member) const;

  // The first bytes of a member, at most so many, unchecked.
  Content head(const Member& member, uint64_t most_bytes) const;

 private:
  struct Inflated;
  Inflated inflated(const Member& member, uint64_t most_bytes) const;
  std::span<const std::byte> stored(const Member& member) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::shared_ptr<const MappedFile> file_;
  std::vector<Member> members_;
};

}  // namespace tutti
