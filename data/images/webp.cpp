#include <webp/decode.h>

#include <string>

#include "data/images/formats.h"
#include "runtime/error.h"

namespace tutti {
namespace {

const uint8_t* data_of(FileBytes file) { return reinterpret_cast<const uint8_t*>(file.data()); }

std::string reason(VP8StatusCode status) {
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) return "the file is truncated";
  if (status == VP8_STATUS_OUT_OF_MEMORY) return "no memory";
  return "its data are damaged";
}

[[noreturn]] void fail(const std::string& why) { throw UserError("no readable WebP file: " + why); }

}  // namespace

ImageSize webp_size(FileBytes file) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(data_of(file), file.size(), &features);
  if (status != VP8_STATUS_OK) fail(reason(status));
  if (features.has_animation) fail("it is an animation; only single images are read");
  return {features.height, features.width};
}

void decode_webp(FileBytes file, const ImageSize& size, uint8_t* pixels) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) fail("libwebp is of another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = pixels,
                          .stride = static_cast<int>(size.width * 3),
                          .size = static_cast<std::size_t>(size.height * size.width * 3)};
  const VP8StatusCode status = WebPDecode(data_of(file), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) fail(reason(status));
}

}  // namespace tutti
