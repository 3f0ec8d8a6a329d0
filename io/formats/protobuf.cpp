#include "io/formats/protobuf.h"

namespace tutti::protobuf {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string tag(uint32_t field, WireType type) { return varint(field << 3 | type); }

}  // namespace

std::string number(uint32_t field, int64_t value) {
  return tag(field, kVarint) + varint(static_cast<uint64_t>(value));
}

std::string number(uint32_t field, double value) { return tag(field, kFixed64) + little_endian(value); }

std::string number(uint32_t field, float value) { return tag(field, kFixed32) + little_endian(value); }

std::string bytes(uint32_t field, std::string_view value) {
  return tag(field, kBytes) + varint(value.size()) + std::string(value);
}

bool Fields::next() {
  uint64_t head = 0;
  if (!read_varint(head)) return false;
  number_ = static_cast<uint32_t>(head >> 3);
  switch (head & 7) {
    case kVarint:
      return read_varint(value_);
    case kFixed64:
      return read_bytes(sizeof(uint64_t));
    case kFixed32:
      return read_bytes(sizeof(uint32_t));
    case kBytes:
      return read_varint(value_) && read_bytes(value_);
    default:
      return false;
  }
}

bool Fields::read_varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Fields::read_bytes(uint64_t count) {
  if (count > rest_.size()) return false;
  bytes_ = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

std::string_view bytes_of(std::string_view message, uint32_t field) {
  std::string_view value;
  for (Fields fields(message); fields.next();)
    if (fields.number() == field) value = fields.bytes();
  return value;
}

}  // namespace tutti::protobuf
