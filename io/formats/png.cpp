#include "io/formats/png.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxStoredBytes = 65535;   // bytes of a stored block
constexpr uint32_t kPngPolynomial = 0xedb88320;  // of CRC-32, reflected
constexpr uint32_t kAdlerModulus = 65521;

// RFC 1950, section 8.2.
uint32_t adler32(const std::string& data) {
  uint32_t low = 1, high = 0;
  for (const unsigned char byte : data) {
    low = (low + byte) % kAdlerModulus;
    high = (high + low) % kAdlerModulus;
  }
  return high << 16 | low;
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string low_byte_first(std::size_t value) {
  return {static_cast<char>(value & 0xff), static_cast<char>(value >> 8)};
}

std::string png_chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + type + data +
         big_endian(crc32<kPngPolynomial>(type + data));
}

// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4).
std::string stored_zlib(const std::string& data) {
  std::string stream = "\x78\x01";
  for (std::size_t at = 0; at < data.size(); at += kMaxStoredBytes) {
    const std::size_t size = std::min(kMaxStoredBytes, data.size() - at);
    stream += at + size == data.size() ? '\1' : '\0';
    stream += low_byte_first(size) + low_byte_first(size ^ 0xffff);
    stream.append(data, at, size);
  }
  return stream + big_endian(adler32(data));
}

}  // namespace

std::string png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels) {
  TUTTI_ASSERT(height > 0 && width > 0 && (channels == 1 || channels == 3), "no such image");
  TUTTI_ASSERT(std::ssize(pixels) == height * width * channels, "as many pixels as the image has");
  constexpr char kGrey = 0, kColours = 2, kBits = 8;
  std::string header = big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height));
  header += {kBits, channels == 1 ? kGrey : kColours, 0, 0, 0};
  std::string rows;
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  for (std::size_t at = 0; at < pixels.size(); at += row_bytes) {
    rows += '\0';  // the filter: none
    rows.append(reinterpret_cast<const char*>(pixels.data()) + at, row_bytes);
  }
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", stored_zlib(rows)) +
         png_chunk("IEND", "");
}

}  // namespace tutti
