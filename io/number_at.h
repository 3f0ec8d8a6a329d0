#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace tutti {

// A little-endian number in a file's bytes, at any place; the bytes must be there.
template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t place) {
  Number number;
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

}  // namespace tutti
