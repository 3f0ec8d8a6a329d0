#include <ATen/core/Tensor.h>

#include <span>

#include "data/images/decoder.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

constexpr int64_t kMostPixels = 1 << 20;  // of an image here; more take time and find nothing

void decode(const std::string& bytes) {
  const auto file = std::as_bytes(std::span(bytes));
  read_or_refuse([&] {
    const ImageSize size = encoded_size(file);
    if (size.height * size.width > kMostPixels) return;
    read_or_refuse([&] { decode_image(file); });
    const auto middle = [](const ImageSize& whole) {
      const ImageSize half{(whole.height + 1) / 2, (whole.width + 1) / 2};
      return NeededPart{{whole.height / 3, whole.width / 3, half}, {1, 1}};
    };
    for (const bool may_shrink : {false, true})
      read_or_refuse([&] { decode_part(file, middle, {.may_shrink = may_shrink}); });
  });
}

}  // namespace

void jpeg(const std::string& bytes) { decode(bytes); }
void png(const std::string& bytes) { decode(bytes); }
void webp(const std::string& bytes) { decode(bytes); }
void bmp(const std::string& bytes) { decode(bytes); }
void gif(const std::string& bytes) { decode(bytes); }
void tiff(const std::string& bytes) { decode(bytes); }
void pnm(const std::string& bytes) { decode(bytes); }

}  // namespace tutti::fuzz
