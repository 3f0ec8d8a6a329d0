#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// The wire format of Protocol Buffers. A message is its fields, one after the other; a field is its number
// and wire type, then its bytes. The functions that write return the bytes of a field.
namespace tutti::protobuf {

template <class Value>
std::string little_endian(Value value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string number(uint32_t field, int64_t value);  // int32, int64, bool, enum
std::string number(uint32_t field, double value);
std::string number(uint32_t field, float value);
std::string bytes(uint32_t field, std::string_view value);  // string, bytes, a message

// Reads the fields of a message, up to the first damaged field.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  bool next();  // false at the end
  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }          // of a varint
  std::string_view bytes() const { return bytes_; }  // of any other

 private:
  bool read_varint(uint64_t& value);
  bool read_bytes(uint64_t count);

  std::string_view rest_, bytes_;
  uint32_t number_ = 0;
  uint64_t value_ = 0;
};

// The bytes of the last field of this number; empty if there is none.
std::string_view bytes_of(std::string_view message, uint32_t field);

}  // namespace tutti::protobuf
