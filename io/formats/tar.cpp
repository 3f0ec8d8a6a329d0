#include "io/formats/tar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/error.h"

namespace tutti {
namespace {

using TarBytes = std::span<const std::byte>;

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMostName = 1 << 16;

[[noreturn]] void fail_at(uint64_t byte, const std::string& what) {
  throw UserError("byte " + std::to_string(byte) + ": " + what);
}

std::string_view text_of(TarBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a file is that begins so, if it is a compressed tar file.
void refuse_compressed(TarBytes begin) {
  constexpr std::pair<std::string_view, const char*> kKinds[] = {{"\x1f\x8b", "gzip"},
                                                                 {"\x28\xb5\x2f\xfd", "zstd"},
                                                                 {"BZh", "bzip2"},
                                                                 {"\xfd"
                                                                  "7zXZ",
                                                                  "xz"}};
  for (const auto& [magic, kind] : kKinds)
    if (text_of(begin).starts_with(magic))
      throw UserError(std::string("compressed by ") + kind + ": uncompress it, or give command = \"" + kind +
                      " -dc FILE\" in place of path");
}

// A header of 512 bytes (POSIX.1-1988 ustar).
class TarHeader {
 public:
  TarHeader(TarBytes block, uint64_t at) : at_(at), block_(block) {}

  bool is_zero() const {
    return std::ranges::all_of(block_, [](std::byte byte) { return byte == std::byte{0}; });
  }
  char type() const { return static_cast<char>(block_[156]); }
  std::string name() const {
    const bool is_ustar = text_of(block_.subspan(257, 6)) == std::string_view("ustar\0", 6);
    const std::string prefix = is_ustar ? field(345, 155) : "";
    return prefix.empty() ? field(0, 100) : prefix + '/' + field(0, 100);
  }
  // Octal; or, of GNU's tar, of base 256.
  uint64_t size() const {
    if (static_cast<uint8_t>(block_[124]) != 0x80) return octal(124, 12, "size");
    uint64_t size = 0;
    for (std::size_t i = 128; i < 136; ++i) size = size << 8 | std::to_integer<uint64_t>(block_[i]);
    return size;
  }
  void check() const {
    uint64_t sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i)
      sum += i >= 148 && i < 156 ? uint64_t{' '} : std::to_integer<uint64_t>(block_[i]);
    if (octal(148, 8, "checksum") != sum)
      fail_at(at_, "no header of a file in a tar file: its checksum is wrong");
  }

 private:
  std::string field(std::size_t first, std::size_t most) const {
    const std::string_view text = text_of(block_.subspan(first, most));
    return std::string(text.substr(0, text.find('\0')));
  }
  uint64_t octal(std::size_t first, std::size_t most, const char* what) const {
    std::string text = field(first, most);
    text.erase(0, text.find_first_not_of(' '));
    text.erase(std::min(text.find(' '), text.size()));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
    if (error != std::errc() || end != text.data() + text.size())
      fail_at(at_ + first, std::string("no ") + what + " in octal digits");
    return number;
  }

  uint64_t at_;
  TarBytes block_;
};

}  // namespace

// Records "27 path=a/long/name\n", each with its length.
void TarReader::read_pax(std::string_view records, uint64_t at, Overrides& next) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    if (error != std::errc() || length < digits + 2 || length > records.size())
      fail_at(at, "a damaged pax header");
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : record.substr(equals + 1);
    if (record.starts_with("path=")) next.name = value;
    if (record.starts_with("size=")) {
      uint64_t size = 0;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), size);
      if (read.ec != std::errc()) fail_at(at, "a damaged pax header");
      next.size = size;
    }
    records.remove_prefix(length);
  }
}

TarBytes TarReader::read(uint64_t bytes) {
  const TarBytes block = read_(bytes);
  at_ += block.size();
  return block;
}

std::optional<TarMember> TarReader::next() {
  Overrides next;
  for (;;) {
    if (read(filling_).size() < filling_) fail_at(at_, "the file ends here, within " + last_ + ": cut off");
    filling_ = 0;
    const uint64_t at = at_;
    const TarBytes block = read(kBlock);
    if (at == 0) refuse_compressed(block);
    has_end_ = !block.empty();
    if (!has_end_) return std::nullopt;
    if (block.size() < kBlock) fail_at(at_, "the file ends here, within a header: cut off");
    const TarHeader header(block, at);
    if (header.is_zero() && joined_) continue;
    if (header.is_zero()) return std::nullopt;
    header.check();
    const char type = header.type();
    const bool is_file = type == '0' || type == '\0' || type == '7';
    const uint64_t size = is_file ? next.size.value_or(header.size()) : header.size();
    const std::string name = header.name();  // its block goes with the next one
    const uint64_t first = at_;
    data_ = read(size);
    if (data_.size() < size)
      fail_at(at_, "the file ends here, within " + name + ", which has " + std::to_string(size) +
                       " bytes: cut off");
    last_ = name;
    filling_ = (kBlock - size % kBlock) % kBlock;
    if (is_file) return TarMember{next.name.value_or(name), first, size};
    if (type == 'L' && size < kMostName) next.name = text_of(data_).substr(0, text_of(data_).find('\0'));
    if (type == 'x' && size < kMostName) read_pax(text_of(data_), first, next);
  }
}

bool read_tar(TarBytes tar, const std::function<void(const TarMember&)>& use) {
  uint64_t at = 0;
  TarReader reader([&](uint64_t bytes) {
    const TarBytes block = tar.subspan(at, std::min<uint64_t>(bytes, tar.size() - at));
    at += block.size();
    return block;
  });
  while (const auto member = reader.next()) use(*member);
  return reader.has_end();
}

}  // namespace tutti
