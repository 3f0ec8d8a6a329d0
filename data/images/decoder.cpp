#include "data/images/decoder.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <string>
#include <string_view>

#include "data/images/formats.h"
#include "runtime/error.h"

namespace tutti {
namespace {

enum class ImageFormat { kJpeg, kPng, kWebp };

ImageFormat format_of(FileBytes file) {
  const auto has = [&](std::size_t at, std::string_view magic) {
    return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
  };
  if (has(0, "\xFF\xD8")) return ImageFormat::kJpeg;
  if (has(0, "\x89PNG\r\n\x1A\n")) return ImageFormat::kPng;
  if (has(0, "RIFF") && has(8, "WEBP")) return ImageFormat::kWebp;
  if (file.empty()) throw UserError("the file is empty; expected a JPEG, PNG or WebP image");
  throw UserError("no JPEG, PNG or WebP image: it begins as none of them");
}

ImageSize checked(const ImageSize& size) {
  if (size.height < 1 || size.width < 1) throw UserError("the image has no pixels");
  if (size.height > kMostPixelsOfAnImage / size.width)
    throw UserError("the image is " + std::to_string(size.width) + " x " + std::to_string(size.height) +
                    " by its header; at most " + std::to_string(kMostPixelsOfAnImage) + " pixels are read");
  return size;
}

ImageSize size_of(FileBytes file, ImageFormat format) {
  if (format == ImageFormat::kJpeg) return checked(jpeg_size(file));
  return checked(format == ImageFormat::kPng ? png_size(file) : webp_size(file));
}

at::Tensor empty_image(const ImageSize& size) { return at::empty({size.height, size.width, 3}, at::kByte); }

int64_t largest_shrink(const NeededPart& needed) {
  for (const int64_t shrink : {8, 4, 2}) {
    const Region scaled = ScaledPart{needed.part, shrink}.scaled();
    if (scaled.size.height >= needed.least.height && scaled.size.width >= needed.least.width) return shrink;
  }
  return 1;
}

}  // namespace

ImageSize encoded_size(std::span<const std::byte> file) { return size_of(file, format_of(file)); }

at::Tensor decode_image(std::span<const std::byte> file) {
  return decode_part(
      file,
      [](const ImageSize& whole) {
        return NeededPart{{0, 0, whole}, whole};
      },
      false);
}

at::Tensor decode_part(std::span<const std::byte> file, const ChoosePart& choose, bool may_shrink) {
  const ImageFormat format = format_of(file);
  const ImageSize whole = size_of(file, format);
  const NeededPart needed = choose(whole);
  const auto& [top, left, size] = needed.part;
  if (format == ImageFormat::kJpeg) {
    const ScaledPart part{needed.part, may_shrink ? largest_shrink(needed) : 1};
    const at::Tensor image = empty_image(part.scaled().size);
    decode_jpeg(file, part, image.mutable_data_ptr<uint8_t>());
    return image;
  }
  const at::Tensor image = empty_image(whole);
  auto* pixels = image.mutable_data_ptr<uint8_t>();
  if (format == ImageFormat::kPng)
    decode_png(file, pixels);
  else
    decode_webp(file, whole, pixels);
  return image.narrow(0, top, size.height).narrow(1, left, size.width);
}

}  // namespace tutti
