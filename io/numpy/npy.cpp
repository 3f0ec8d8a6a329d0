#include "io/numpy/npy.h"

#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMostHeader = 1 << 20, kMostBehind = 1 << 20;  // bytes of members of archives
constexpr std::size_t kBeforeLength = kMagic.size() + 2;          // with the version

// The header's text is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : text_(text) {}

  // The text of the value of `key`, from its first character on.
  std::optional<std::string_view> value(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = quote + std::string(key) + quote;
      std::size_t at = text_.find(quoted);
      if (at == std::string_view::npos) continue;
      at = text_.find_first_not_of(' ', at + quoted.size());
      if (at == std::string_view::npos || text_[at] != ':') return std::nullopt;
      at = text_.find_first_not_of(' ', at + 1);
      if (at != std::string_view::npos) return text_.substr(at);
    }
    return std::nullopt;
  }

  std::optional<std::string> text(std::string_view key) const {
    const auto place = value(key);
    if (!place || (place->front() != '\'' && place->front() != '"')) return std::nullopt;
    const std::size_t end = place->find(place->front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(place->substr(1, end - 1));
  }

  std::optional<std::vector<int64_t>> sizes(std::string_view key) const {
    const auto place = value(key);
    if (!place || place->front() != '(') return std::nullopt;
    const std::size_t end = place->find(')');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view left = place->substr(1, end - 1);
    std::vector<int64_t> sizes;
    for (;;) {
      left.remove_prefix(std::min(left.find_first_not_of(", "), left.size()));
      if (left.empty()) return sizes;
      int64_t size = -1;
      const auto [after, error] = std::from_chars(left.data(), left.data() + left.size(), size);
      if (error != std::errc() || size < 0) return std::nullopt;
      sizes.push_back(size);
      left.remove_prefix(static_cast<std::size_t>(after - left.data()));
      if (left.starts_with('L')) left.remove_prefix(1);  // of Python 2
    }
  }

 private:
  std::string_view text_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct HeaderPlace {
  std::size_t begin, end;
};

std::optional<HeaderPlace> header_place(std::string_view file) {
  if (file.size() < kBeforeLength + 4) return std::nullopt;
  const int version = file[kMagic.size()];
  if (version < 1 || version > 3) return std::nullopt;
  const std::size_t width = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i)
    length |= std::size_t{static_cast<uint8_t>(file[kBeforeLength + i])} << 8 * i;
  const std::size_t begin = kBeforeLength + width;
  if (length > file.size() - begin) return std::nullopt;
  return HeaderPlace{begin, begin + length};
}

// The bytes of a number; 0 if the type is none that is read.
std::size_t number_bytes(const std::string& type) {
  if (type.size() != 3 || !std::isdigit(static_cast<unsigned char>(type[2]))) return 0;
  const bool is_number = std::string_view("biuf").find(type[1]) != std::string_view::npos;
  const auto bytes = static_cast<std::size_t>(type[2] - '0');
  const bool is_little = type[0] == '<' || type[0] == '=' || (type[0] == '|' && bytes == 1);
  const bool is_width = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  return is_number && is_little && is_width && (type[1] != 'f' || bytes > 1) ? bytes : 0;
}

}  // namespace

size_t NpyHeader::bytes() const {
  size_t all = item_bytes;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(all, static_cast<size_t>(size), &all)) return SIZE_MAX;
  return all;
}

bool is_npy(std::span<const std::byte> file) { return as_text(file).starts_with(kMagic); }

namespace {

// `bytes`: of the whole file, of which `head` is the beginning.
NpyHeader header_of(std::span<const std::byte> head, uint64_t bytes, const std::string& name) {
  const auto fail = [&name](const std::string& what) { throw UserError({name}, what); };
  const std::string_view text = as_text(head);
  const auto place = is_npy(head) ? header_place(text) : std::nullopt;
  if (!place) fail("not an array of numpy (.npy), or its header is damaged");
  const Dictionary header(text.substr(place->begin, place->end - place->begin));
  const auto type = header.text("descr");
  const auto shape = header.sizes("shape");
  const auto order = header.value("fortran_order");
  if (!shape || !order || !(order->starts_with("True") || order->starts_with("False")))
    fail("the header of this array of numpy is damaged");
  if (!type) fail("an array of records, which is not read; save its fields as arrays");
  NpyHeader array{*type, *shape, number_bytes(*type), place->end};
  if (array.item_bytes == 0)
    fail("numbers of numpy's type '" + printable(*type) + "' are not read; " +
         (type->starts_with('>') ? "they are big-endian: a.astype(a.dtype.newbyteorder('<'))"
                                 : "integers, floats and booleans are"));
  if (order->starts_with("True") && shape->size() > 1)
    fail("the array is stored column by column; save numpy.ascontiguousarray(a)");
  if (array.bytes() > bytes - array.at)
    fail("truncated: the array has " +
         (array.bytes() == SIZE_MAX ? "more bytes than fit" : std::to_string(array.bytes()) + " bytes") +
         ", the file " + std::to_string(bytes - array.at) + " behind its header");
  return array;
}

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& name) {
  return header_of(file, file.size(), name);
}

NpyHeader read_npy_header(const ZipFile& archive, const ZipFile::Member& member, const std::string& name) {
  const NpyHeader header = header_of(archive.head(member, kMostHeader).bytes, member.bytes, name);
  if (member.bytes - header.at - header.bytes() > kMostBehind)
    throw UserError({name}, "the array has " + grouped(static_cast<int64_t>(header.bytes())) +
                                " bytes, and the archive " + grouped(static_cast<int64_t>(member.bytes)) +
                                " under its name: damaged");
  return header;
}

}  // namespace tutti
