#include "data/images/decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "data/images/formats.h"
#include "runtime/error.h"

namespace tutti {
namespace {

struct ImageFormat {
  const char* name;
  bool (*begins)(FileBytes file);
  ImageSize (*size)(FileBytes file);
  void (*decode)(FileBytes file, const ImageSize& size, uint8_t* pixels);  // null: in parts, as JPEGs
};

bool has(FileBytes file, std::size_t at, std::string_view magic) {
  return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
}

// The sizes of the headers that BMP has.
bool begins_as_bmp(FileBytes file) {
  constexpr std::size_t kHeader = 14;
  return has(file, 0, "BM") && file.size() > kHeader + 3 && file[kHeader] != std::byte{0} &&
         std::ranges::all_of(file.subspan(kHeader + 1, 3), [](std::byte b) { return b == std::byte{0}; });
}

bool begins_as_pnm(FileBytes file) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(file[i]); };
  return file.size() > 2 && at(0) == 'P' && at(1) >= '1' && at(1) <= '6' &&
         (std::isspace(at(2)) || at(2) == '#');
}

constexpr ImageFormat kFormats[] = {
    {"JPEG", [](FileBytes file) { return has(file, 0, "\xFF\xD8\xFF"); }, jpeg_size, nullptr},
    {"PNG", [](FileBytes file) { return has(file, 0, "\x89PNG\r\n\x1A\n"); }, png_size, decode_png},
    {"WebP", [](FileBytes file) { return has(file, 0, "RIFF") && has(file, 8, "WEBP"); }, webp_size,
     decode_webp},
    {"GIF", [](FileBytes file) { return has(file, 0, "GIF87a") || has(file, 0, "GIF89a"); }, gif_size,
     decode_gif},
    {"TIFF",
     [](FileBytes file) {
       return has(file, 0, {"II*\0", 4}) || has(file, 0, {"MM\0*", 4}) || has(file, 0, {"II+\0", 4}) ||
              has(file, 0, {"MM\0+", 4});
     },
     tiff_size, decode_tiff},
    {"BMP", begins_as_bmp, bmp_size, decode_bmp},
    {"PPM", begins_as_pnm, pnm_size, decode_pnm}};

const ImageFormat* find_format(FileBytes file) {
  const auto* format =
      std::ranges::find_if(kFormats, [&](const ImageFormat& one) { return one.begins(file); });
  return format == std::end(kFormats) ? nullptr : format;
}

const ImageFormat& format_of(FileBytes file) {
  if (const ImageFormat* format = find_format(file)) return *format;
  std::string names;
  for (const ImageFormat& format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format.name);
  throw UserError(file.empty() ? "the file is empty; expected an image"
                               : "no image of a kind that is read: it begins as none of " + names);
}

ImageSize size_of(FileBytes file, const ImageFormat& format, int64_t most_pixels) {
  const ImageSize size = format.size(file);
  if (size.height < 1 || size.width < 1) throw UserError("the image has no pixels");
  if (size.height > most_pixels / size.width)
    throw UserError("the image is " + std::to_string(size.width) + " x " + std::to_string(size.height) +
                    " by its header; at most " + std::to_string(most_pixels) +
                    " pixels are read (max_image_pixels)");
  return size;
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

bool begins_as_image(std::span<const std::byte> file) { return !begins_as_pnm(file) && find_format(file); }

ImageSize encoded_size(std::span<const std::byte> file, int64_t most_pixels) {
  return size_of(file, format_of(file), most_pixels);
}

at::Tensor decode_image(std::span<const std::byte> file) {
  return decode_part(file, [](const ImageSize& whole) { return NeededPart{{0, 0, whole}, whole}; }, {});
}

at::Tensor decode_part(std::span<const std::byte> file, const ChoosePart& choose, const Decoding& decoding) {
  const ImageFormat& format = format_of(file);
  const ImageSize whole = size_of(file, format, decoding.most_pixels);
  const NeededPart needed = choose(whole);
  const auto& [top, left, size] = needed.part;
  if (!format.decode) {
    const ScaledPart part{needed.part, decoding.may_shrink ? largest_shrink(needed) : 1};
    const at::Tensor image = empty_image(part.scaled().size);
    decode_jpeg(file, part, image.mutable_data_ptr<uint8_t>());
    return image;
  }
  const at::Tensor image = empty_image(whole);
  format.decode(file, whole, image.mutable_data_ptr<uint8_t>());
  return image.narrow(0, top, size.height).narrow(1, left, size.width);
}

at::Tensor decode_mask(std::span<const std::byte> file, int64_t most_pixels) {
  const ImageFormat& format = format_of(file);
  const std::string name = format.name;
  if (name == "JPEG" || name == "WebP")
    throw UserError("a mask in " + name + ", which may change the values of pixels; expected PNG");
  const ImageSize size = size_of(file, format, most_pixels);
  if (name == "PNG") {
    const at::Tensor values = at::empty({size.height, size.width}, at::kByte);
    decode_png_values(file, values.mutable_data_ptr<uint8_t>());
    return values;
  }
  const at::Tensor image = empty_image(size);
  format.decode(file, size, image.mutable_data_ptr<uint8_t>());
  const at::Tensor red = image.select(2, 0);
  for (const int64_t channel : {1, 2})
    if (!at::equal(red, image.select(2, channel)))
      throw UserError("a mask in colors; expected gray, or a PNG with a palette, whose values are classes");
  return red.contiguous();
}

}  // namespace tutti
