#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "data/images/decoder.h"
#include "tests/runtime/scratch.h"

namespace tutti {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// One of the files of tests/golden/make_images.py.
inline std::string encoded_sample(const std::string& name) {
  return read_text(TUTTI_SOURCE_DIR "/tests/golden/images/" + name);
}

inline at::Tensor decoded_sample(const std::string& name) {
  return decode_image(bytes_of(encoded_sample(name)));
}

}  // namespace tutti
