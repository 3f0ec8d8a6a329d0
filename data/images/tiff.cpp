#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "data/images/formats.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kMostTiffMessage = 200;
constexpr tmsize_t kMostAllocated = tmsize_t{1} << 29;  // at once, of a strip, tile or directory

// A file in memory, as libtiff reads it, and its first error.
struct TiffBytes {
  FileBytes file;
  uint64_t at = 0;
  bool is_short = false;  // more was asked for than there is
  std::string error = {};
};

TiffBytes& bytes_of(thandle_t handle) { return *static_cast<TiffBytes*>(handle); }

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t count) {
  TiffBytes& bytes = bytes_of(handle);
  const uint64_t left = bytes.file.size() - std::min<uint64_t>(bytes.at, bytes.file.size());
  const auto taken = std::min<uint64_t>(left, static_cast<uint64_t>(count));
  std::memcpy(to, bytes.file.data() + bytes.file.size() - left, taken);
  bytes.at += taken;
  bytes.is_short = bytes.is_short || taken < static_cast<uint64_t>(count);
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffBytes& bytes = bytes_of(handle);
  bytes.at = offset + (whence == SEEK_CUR ? bytes.at : whence == SEEK_END ? bytes.file.size() : 0);
  return bytes.at;
}

int close_nothing(thandle_t) { return 0; }

toff_t tiff_bytes(thandle_t handle) { return bytes_of(handle).file.size(); }

int keep_error(TIFF*, void* handle, const char*, const char* format, va_list arguments) {
  char text[kMostTiffMessage];
  std::vsnprintf(text, sizeof text, format, arguments);
  const char* const message = text + std::strspn(text, ": ");  // behind a name, which is empty
  if (std::string& error = bytes_of(handle).error; error.empty()) error = message;
  return 1;
}

int ignore_tiff_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

// A TIFF file whose first directory has been read.
class OpenTiff {
 public:
  explicit OpenTiff(FileBytes file) : bytes_{file} {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                               TIFFOpenOptionsFree);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &bytes_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_tiff_warning, nullptr);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostAllocated);
    tiff_.reset(TIFFClientOpenExt("", "rm", &bytes_, read_tiff, write_nothing, seek_tiff, close_nothing,
                                  tiff_bytes, nullptr, nullptr, options.get()));
    if (!tiff_) fail();
  }

  ImageSize size() {
    uint32_t width = 0, height = 0;
    if (!TIFFGetField(tiff_.get(), TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff_.get(), TIFFTAG_IMAGELENGTH, &height))
      fail("it has no size");
    return is_turned() ? ImageSize{width, height} : ImageSize{height, width};
  }

  void decode(const ImageSize& size, uint8_t* pixels) {
    require_colors();
    require_bits();
    drop_alpha();
    const ImageSize stored = is_turned() ? ImageSize{size.width, size.height} : size;
    const auto place = orientation();
    const uint16_t plain = ORIENTATION_TOPLEFT;
    TIFFSetField(tiff_.get(), TIFFTAG_ORIENTATION, plain);  // turned below, which libtiff does by halves
    std::vector<uint32_t> raster(static_cast<std::size_t>(stored.width * stored.height));
    if (!TIFFReadRGBAImageOriented(tiff_.get(), static_cast<uint32_t>(stored.width),
                                   static_cast<uint32_t>(stored.height), raster.data(), ORIENTATION_TOPLEFT,
                                   /*stop_on_error=*/1) ||
        !bytes_.error.empty())
      fail();
    for (int64_t y = 0; y < size.height; ++y)
      for (int64_t x = 0; x < size.width; ++x, pixels += 3) {
        const uint32_t color = raster[static_cast<std::size_t>(turned(place, stored, y, x))];
        pixels[0] = TIFFGetR(color), pixels[1] = TIFFGetG(color), pixels[2] = TIFFGetB(color);
      }
  }

 private:
  // The place in the stored image of a pixel as it is seen.
  static int64_t turned(int place, const ImageSize& stored, int64_t y, int64_t x) {
    if (place >= ORIENTATION_LEFTTOP) std::swap(y, x);
    const bool from_right = place == ORIENTATION_TOPRIGHT || place == ORIENTATION_BOTRIGHT ||
                            place == ORIENTATION_RIGHTBOT || place == ORIENTATION_LEFTBOT;
    const bool from_below = place == ORIENTATION_BOTRIGHT || place == ORIENTATION_BOTLEFT ||
                            place == ORIENTATION_RIGHTTOP || place == ORIENTATION_RIGHTBOT;
    return (from_below ? stored.height - 1 - y : y) * stored.width + (from_right ? stored.width - 1 - x : x);
  }

  int field(uint32_t tag) {
    uint16_t value = 0;
    TIFFGetFieldDefaulted(tiff_.get(), tag, &value);
    return value;
  }
  int orientation() {
    const int place = field(TIFFTAG_ORIENTATION);
    return place < ORIENTATION_TOPLEFT || place > ORIENTATION_LEFTBOT ? ORIENTATION_TOPLEFT : place;
  }
  bool is_turned() { return orientation() >= ORIENTATION_LEFTTOP; }

  // Spaces whose colors libtiff and Pillow make alike.
  void require_colors() {
    static constexpr int kRead[] = {PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_RGB,
                                    PHOTOMETRIC_PALETTE,    PHOTOMETRIC_SEPARATED,  PHOTOMETRIC_YCBCR};
    uint16_t space = 0;
    if (!TIFFGetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &space))
      fail("it has no PhotometricInterpretation, so whether 0 is black or white is not known: write it anew");
    if (std::ranges::find(kRead, space) == std::end(kRead))
      fail("its color space is number " + std::to_string(space) +
           (space == PHOTOMETRIC_CIELAB ? ", CIELAB" : "") +
           "; read are gray, RGB, palettes, CMYK and YCbCr: convert it");
  }
  void require_bits() {
    const int bits = field(TIFFTAG_BITSPERSAMPLE), samples = field(TIFFTAG_SAMPLESPERPIXEL);
    const bool is_deep_color = bits == 16 && samples >= 3;
    if (bits > 8 && !is_deep_color)
      fail("it has " + std::to_string(samples) + " samples of " + std::to_string(bits) +
           " bits a pixel; read are up to 8 bits, and colors of 16");
  }
  // Which libtiff would multiply colors by.
  void drop_alpha() {
    uint16_t count = 0;
    const uint16_t* kinds = nullptr;
    TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds);
    const std::vector<uint16_t> none(count, EXTRASAMPLE_UNSPECIFIED);
    if (count > 0) TIFFSetField(tiff_.get(), TIFFTAG_EXTRASAMPLES, count, none.data());
  }

  [[noreturn]] void fail(const std::string& why = "") const {
    const std::string said = bytes_.error.empty() ? "its data are damaged" : bytes_.error;
    throw UserError("no readable TIFF file: " + (!why.empty()      ? why
                                                 : bytes_.is_short ? "the file is truncated"
                                                                   : said));
  }

  TiffBytes bytes_;
  std::unique_ptr<TIFF, void (*)(TIFF*)> tiff_{nullptr, TIFFClose};
};

}  // namespace

ImageSize tiff_size(FileBytes file) { return OpenTiff(file).size(); }

void decode_tiff(FileBytes file, const ImageSize& size, uint8_t* pixels) {
  OpenTiff(file).decode(size, pixels);
}

}  // namespace tutti
