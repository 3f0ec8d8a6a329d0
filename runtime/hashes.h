#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

// XXH3. On x86 xxHash chooses the widest vector instructions at run time, which changes no hash.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace tutti {

// XXH3 (64 bits) of bytes that come in parts.
class StreamedHash {
 public:
  StreamedHash() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

// The cyclic redundancy check of a reflected 32-bit polynomial, with initial value and result inverted:
// 0xedb88320 is CRC-32 (PNG, gzip), 0x82f63b78 is CRC-32C (Castagnoli).
template <uint32_t kPolynomial>
uint32_t crc32(std::string_view data) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
      table[byte] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0U;
  for (const unsigned char byte : data) crc = (crc >> 8) ^ kTable[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace tutti
