#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "data/images/formats.h"
#include "runtime/error.h"

// libpng leaves by longjmp: the functions between setjmp and libpng hold no objects with destructors.
namespace tutti {
namespace {

constexpr std::size_t kMostMessage = 200;

struct PngReader {
  png_structp png;
  png_infop info;
  const std::byte* next;
  std::size_t left;
  png_bytep* rows;  // null: the header alone is read
  bool is_truncated;
  char message[kMostMessage];
};

[[noreturn]] void leave_with_error(png_structp png, png_const_charp message) {
  auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader.message, sizeof reader.message, "%s",
                reader.is_truncated ? "the file is truncated" : message);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.left) {
    reader.is_truncated = true;
    png_error(png, "truncated");
  }
  std::memcpy(to, reader.next, count);
  reader.next += count;
  reader.left -= count;
}

void read_header(PngReader& reader) {
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(reader.png, reader.info);
}

// Of 16 bits Pillow takes the highest 8 in colors, but clips gray at 255.
bool is_deep_gray(const PngReader& reader) {
  return png_get_bit_depth(reader.png, reader.info) == 16 &&
         png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_GRAY;
}

void clip_gray(uint8_t* row, std::size_t width) {
  for (std::size_t x = width; x-- > 0;) std::memset(row + 3 * x, row[2 * x] > 0 ? 255 : row[2 * x + 1], 3);
}

void read_rows(PngReader& reader) {
  if (!is_deep_gray(reader)) {
    png_set_palette_to_rgb(reader.png);
    png_set_expand_gray_1_2_4_to_8(reader.png);
    png_set_strip_16(reader.png);
    png_set_gray_to_rgb(reader.png);
  }
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  png_read_image(reader.png, reader.rows);
  png_read_end(reader.png, nullptr);
}

bool runs(PngReader& reader, void (*step)(PngReader&)) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  step(reader);
  return true;
}

// A PNG file whose header has been read.
class OpenPng {
 public:
  explicit OpenPng(FileBytes file)
      : reader_{.png = nullptr,
                .info = nullptr,
                .next = file.data(),
                .left = file.size(),
                .rows = nullptr,
                .is_truncated = false,
                .message = ""} {
    reader_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader_, leave_with_error, ignore_warning);
    if (reader_.png) reader_.info = png_create_info_struct(reader_.png);
    if (!reader_.info) fail("no memory");
    png_set_read_fn(reader_.png, &reader_, read_bytes);
    run(read_header);
  }
  ~OpenPng() { close(); }
  OpenPng(const OpenPng&) = delete;
  OpenPng& operator=(const OpenPng&) = delete;

  ImageSize size() const {
    return {static_cast<int64_t>(png_get_image_height(reader_.png, reader_.info)),
            static_cast<int64_t>(png_get_image_width(reader_.png, reader_.info))};
  }
  void decode(uint8_t* pixels) {
    std::vector<png_bytep> rows(static_cast<std::size_t>(size().height));
    for (std::size_t y = 0; y < rows.size(); ++y)
      rows[y] = pixels + static_cast<int64_t>(y) * size().width * 3;
    reader_.rows = rows.data();
    const bool is_deep = is_deep_gray(reader_);
    run(read_rows);
    for (png_bytep row : rows)
      if (is_deep) clip_gray(row, static_cast<std::size_t>(size().width));
  }

 private:
  void run(void (*step)(PngReader&)) {
    if (!runs(reader_, step)) fail(reader_.message);
  }
  [[noreturn]] void fail(const std::string& message) {
    close();
    throw UserError("no readable PNG file: " + message);
  }
  void close() {
    if (reader_.png) png_destroy_read_struct(&reader_.png, &reader_.info, nullptr);
  }

  PngReader reader_;
};

}  // namespace

ImageSize png_size(FileBytes file) { return OpenPng(file).size(); }

void decode_png(FileBytes file, uint8_t* pixels) { OpenPng(file).decode(pixels); }

}  // namespace tutti
