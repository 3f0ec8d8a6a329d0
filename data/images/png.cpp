#include <png.h>

#include <algorithm>
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
constexpr std::size_t kMostLeft = 1 << 16;  // compressed bytes behind the rows

// The end of the last chunk of pixels, as far as chunks can be followed.
const std::byte* end_of_pixels(FileBytes file) {
  constexpr std::size_t kSignature = 8, kAround = 12;  // a chunk's length, name and sum
  std::size_t end = 0;
  for (std::size_t at = kSignature; at + kAround <= file.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(file[at + i]); };
    const std::size_t bytes = kAround + (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3));
    const bool has_pixels = std::memcmp(file.data() + at + 4, "IDAT", 4) == 0;
    at += std::min(bytes, file.size() - at);
    if (has_pixels) end = at;
  }
  return file.data() + end;
}

struct PngReader {
  png_structp png;
  png_infop info;
  const std::byte* next;
  std::size_t left;
  const std::byte* end_of_data;  // of the last IDAT
  std::size_t data_left;         // bytes that may be read before it
  png_bytep* rows;               // null: the header alone is read
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
  if (reader.next < reader.end_of_data) {
    if (count > reader.data_left) png_error(png, "its data are more than its pixels");
    reader.data_left -= count;
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

void read_all_rows(PngReader& reader) {
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  const png_uint_32 height = png_get_image_height(reader.png, reader.info);
  for (int pass = 1; pass <= passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y) {
      // With the last row libpng inflates what is left, however much.
      if (pass == passes && y + 1 == height)
        reader.data_left = kMostLeft + 2 * png_get_rowbytes(reader.png, reader.info);
      png_read_row(reader.png, reader.rows[y], nullptr);
    }
  png_read_end(reader.png, nullptr);
}

void read_rows(PngReader& reader) {
  if (!is_deep_gray(reader)) {
    png_set_palette_to_rgb(reader.png);
    png_set_expand_gray_1_2_4_to_8(reader.png);
    png_set_strip_16(reader.png);
    png_set_gray_to_rgb(reader.png);
  }
  png_set_strip_alpha(reader.png);
  read_all_rows(reader);
}

// A byte a pixel, as stored.
void read_values(PngReader& reader) {
  png_set_packing(reader.png);
  read_all_rows(reader);
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
                .end_of_data = end_of_pixels(file),
                .data_left = SIZE_MAX,
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
    const bool is_deep = is_deep_gray(reader_);
    std::vector<png_bytep> rows = rows_in(pixels, 3);
    run(read_rows);
    for (png_bytep row : rows)
      if (is_deep) clip_gray(row, static_cast<std::size_t>(size().width));
  }

  void decode_values(uint8_t* values) {
    const int type = png_get_color_type(reader_.png, reader_.info);
    if (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE) refuse("its pixels are colors");
    if (png_get_bit_depth(reader_.png, reader_.info) > 8) refuse("its pixels have 16 bits");
    const std::vector<png_bytep> rows = rows_in(values, 1);
    run(read_values);
  }

 private:
  // Where the rows go; libpng sees them until the vector ends.
  std::vector<png_bytep> rows_in(uint8_t* pixels, int64_t channels) {
    std::vector<png_bytep> rows(static_cast<std::size_t>(size().height));
    for (std::size_t y = 0; y < rows.size(); ++y)
      rows[y] = pixels + static_cast<int64_t>(y) * size().width * channels;
    reader_.rows = rows.data();
    return rows;
  }
  [[noreturn]] void refuse(const std::string& what) {
    close();
    throw UserError(what + "; expected a mask of gray or of a palette, of 8 bits, whose values are classes");
  }
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

void decode_png(FileBytes file, const ImageSize&, uint8_t* pixels) { OpenPng(file).decode(pixels); }

void decode_png_values(FileBytes file, uint8_t* values) { OpenPng(file).decode_values(values); }

}  // namespace tutti
