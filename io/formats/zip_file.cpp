#include "io/formats/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "io/number_at.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr uint32_t kDirectoryMark = 0x02014b50, kMemberMark = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56;
constexpr std::size_t kDirectoryBytes = 46, kMemberBytes = 30;
constexpr std::size_t kMostComment = 0xffff;
constexpr uint32_t kIn64 = 0xffffffff;  // the number stands in the extra field
constexpr uint16_t kExtra64 = 1;
constexpr uint64_t kMostRatio = 1032;  // of deflate

using Bytes = std::span<const std::byte>;

std::optional<Bytes> part(Bytes bytes, uint64_t place, uint64_t count) {
  if (place > bytes.size() || count > bytes.size() - place) return std::nullopt;
  return bytes.subspan(place, count);
}

struct Directory {
  uint64_t place = 0, bytes = 0, members = 0;
};

std::optional<Directory> directory_of(Bytes file) {
  if (file.size() < kEndBytes) return std::nullopt;
  const std::size_t last = file.size() - kEndBytes;
  for (std::size_t end = last + 1; end-- > last - std::min(last, kMostComment);) {
    if (number_at<uint32_t>(file, end) != kEndMark) continue;
    const Directory directory{number_at<uint32_t>(file, end + 16), number_at<uint32_t>(file, end + 12),
                              number_at<uint16_t>(file, end + 10)};
    if (end < kLocator64Bytes || number_at<uint32_t>(file, end - kLocator64Bytes) != kLocator64Mark)
      return directory;
    const auto end64 = part(file, number_at<uint64_t>(file, end - kLocator64Bytes + 8), kEnd64Bytes);
    if (!end64 || number_at<uint32_t>(*end64, 0) != kEnd64Mark) return std::nullopt;
    return Directory{number_at<uint64_t>(*end64, 48), number_at<uint64_t>(*end64, 40),
                     number_at<uint64_t>(*end64, 32)};
  }
  return std::nullopt;
}

// Replaces numbers that do not fit in 32 bits by those of the extra field, in this order.
void read_extra64(Bytes extra, std::initializer_list<uint64_t*> numbers) {
  while (extra.size() >= 4) {
    const std::size_t bytes = std::min<std::size_t>(number_at<uint16_t>(extra, 2), extra.size() - 4);
    if (number_at<uint16_t>(extra, 0) == kExtra64) {
      Bytes left = extra.subspan(4, bytes);
      for (uint64_t* number : numbers) {
        if (*number != kIn64 || left.size() < sizeof *number) continue;
        *number = number_at<uint64_t>(left, 0);
        left = left.subspan(sizeof *number);
      }
    }
    extra = extra.subspan(4 + bytes);
  }
}

}  // namespace

ZipFile::ZipFile(const std::string& path) : file_(std::make_shared<const MappedFile>(path)) {
  const auto directory = directory_of(file_->bytes());
  const auto all = directory ? part(file_->bytes(), directory->place, directory->bytes) : std::nullopt;
  if (!all) fail("not a zip archive, or truncated: its directory is missing");
  Bytes left = *all;
  for (uint64_t i = 0; i < directory->members; ++i) {
    if (left.size() < kDirectoryBytes || number_at<uint32_t>(left, 0) != kDirectoryMark)
      fail("the directory of the archive is damaged");
    const std::size_t name = number_at<uint16_t>(left, 28), extra = number_at<uint16_t>(left, 30);
    const std::size_t whole = kDirectoryBytes + name + extra + number_at<uint16_t>(left, 32);
    if (left.size() < whole) fail("the directory of the archive is damaged");
    const uint16_t method = number_at<uint16_t>(left, 10);
    Member member{.name = {reinterpret_cast<const char*>(left.data()) + kDirectoryBytes, name},
                  .bytes = number_at<uint32_t>(left, 24),
                  .compressed_bytes = number_at<uint32_t>(left, 20),
                  .header = number_at<uint32_t>(left, 42),
                  .crc = number_at<uint32_t>(left, 16),
                  .deflated = method == 8};
    read_extra64(left.subspan(kDirectoryBytes + name, extra),
                 {&member.bytes, &member.compressed_bytes, &member.header});
    if ((number_at<uint16_t>(left, 8) & 1) != 0) fail("'" + printable(member.name) + "' is encrypted");
    if (method != 0 && method != 8)
      fail("'" + printable(member.name) + "' is compressed by method " + std::to_string(method) +
           "; stored and deflated members are read");
    members_.push_back(std::move(member));
    left = left.subspan(whole);
  }
}

std::span<const std::byte> ZipFile::stored(const Member& member) const {
  const auto header = part(file_->bytes(), member.header, kMemberBytes);
  if (header && number_at<uint32_t>(*header, 0) == kMemberMark) {
    const uint64_t begin =
        member.header + kMemberBytes + number_at<uint16_t>(*header, 26) + number_at<uint16_t>(*header, 28);
    if (const auto bytes = part(file_->bytes(), begin, member.compressed_bytes)) return *bytes;
  }
  fail("'" + printable(member.name) + "' is damaged or truncated");
}

struct ZipFile::Inflated {
  std::shared_ptr<std::vector<std::byte>> bytes;
  bool is_whole = false;
};

// At most the first bytes of a deflated member.
ZipFile::Inflated ZipFile::inflated(const Member& member, uint64_t most_bytes) const {
  const auto bytes = stored(member);
  if (member.bytes > kMostRatio * bytes.size() + kMostRatio)
    fail("'" + printable(member.name) + "' claims more bytes than it can hold");
  const auto all = std::make_shared<std::vector<std::byte>>(std::min(member.bytes, most_bytes));
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  // Deflate's counts have 32 bits.
  constexpr uint64_t kAtOnce = uint64_t{1} << 30;
  int status = Z_OK;
  uint64_t taken = 0, given = 0;
  while (status == Z_OK) {
    const uint64_t in = std::min(kAtOnce, bytes.size() - taken), out = std::min(kAtOnce, all->size() - given);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(all->data() + given);
    stream.avail_out = static_cast<uInt>(out);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    given += out - stream.avail_out;
  }
  inflateEnd(&stream);
  if (given != all->size()) fail("'" + printable(member.name) + "' is damaged: it does not inflate");
  return {all, status == Z_STREAM_END};
}

ZipFile::Content ZipFile::head(const Member& member, uint64_t most_bytes) const {
  if (!member.deflated) {
    const auto bytes = stored(member);
    return {file_, bytes.first(std::min<uint64_t>(bytes.size(), most_bytes))};
  }
  const auto bytes = inflated(member, most_bytes).bytes;
  return {bytes, *bytes};
}

ZipFile::Content ZipFile::read(const Member& member) const {
  if (!member.deflated) return {file_, stored(member)};
  const auto [whole, is_whole] = inflated(member, UINT64_MAX);
  if (!is_whole) fail("'" + printable(member.name) + "' is damaged: it does not inflate");
  if (crc32_z(0, reinterpret_cast<const Bytef*>(whole->data()), whole->size()) != member.crc)
    fail("'" + printable(member.name) + "' is damaged: its checksum is another");
  return {whole, *whole};
}

void ZipFile::fail(const std::string& what) const { throw UserError({file_->path()}, what); }

}  // namespace tutti
