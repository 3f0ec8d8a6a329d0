#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstring>
#include <memory>
#include <string>

#include "data/images/formats.h"
#include "runtime/error.h"

// libjpeg leaves by longjmp: the functions between setjmp and libjpeg hold no objects with destructors.
namespace tutti {
namespace {

constexpr int kInkChannels = 4;
constexpr int kMostScans = 500;  // libjpeg-turbo's own fuzzers allow as many; encoders write ten
constexpr int64_t kMargin = 4;   // pixels around a part that smoothed chroma depends on

struct JpegReader {
  jpeg_decompress_struct decompress;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
  ScaledPart part;
  uint8_t* pixels;
  uint8_t* row;  // of the decoded columns
};

JpegReader& reader_of(j_common_ptr common) { return *static_cast<JpegReader*>(common->client_data); }

[[noreturn]] void leave_with(JpegReader& reader, const char* message) {
  std::snprintf(reader.message, sizeof reader.message, "%s", message);
  std::longjmp(reader.leave, 1);
}

[[noreturn]] void leave_with_error(j_common_ptr common) {
  char message[JMSG_LENGTH_MAX];
  common->err->format_message(common, message);
  leave_with(reader_of(common), message);
}

// Pillow, too, ignores errors after which libjpeg continues.
void ignore_message(j_common_ptr common, int level) {
  if (level < 0) ++common->err->num_warnings;
}

boolean refuse_end(j_decompress_ptr decompress) {
  leave_with(reader_of(reinterpret_cast<j_common_ptr>(decompress)), "the file is truncated");
}

void skip_bytes(j_decompress_ptr decompress, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *decompress->src;
  if (static_cast<std::size_t>(count) > source.bytes_in_buffer) refuse_end(decompress);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

void nothing(j_decompress_ptr) {}

// Each scan of a few bytes costs as much time as the whole image.
void limit_scans(j_common_ptr common) {
  JpegReader& reader = reader_of(common);
  if (reader.decompress.input_scan_number > kMostScans) leave_with(reader, "it has too many scans");
}

void read_header(JpegReader& reader) {
  jpeg_create_decompress(&reader.decompress);
  reader.decompress.client_data = &reader;
  reader.decompress.src = &reader.source;
  reader.progress.progress_monitor = limit_scans;
  reader.decompress.progress = &reader.progress;
  jpeg_read_header(&reader.decompress, TRUE);
  const int channels = reader.decompress.num_components;
  if (channels != 1 && channels != 3 && channels != kInkChannels)
    leave_with(reader, "it has neither 1 (gray), 3 nor 4 (CMYK) components");
}

uint8_t muldiv255(int a, int b) {
  const int product = a * b + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

// As Pillow: inks are stored inverted, as Adobe's programs do.
void inks_to_rgb(const uint8_t* inks, int64_t count, uint8_t* rgb) {
  for (int64_t x = 0; x < count; ++x, inks += kInkChannels, rgb += 3)
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(inks[3] - muldiv255(255 - inks[c], inks[3]));
}

void read_row(JpegReader& reader) {
  JSAMPROW row = reader.row;
  if (jpeg_read_scanlines(&reader.decompress, &row, 1) != 1) leave_with(reader, "a row is missing");
}

// The columns from the first that is decoded to the end of the part, with a margin.
JDIMENSION crop_columns(JpegReader& reader, const Region& part) {
  const int64_t all = reader.decompress.output_width;
  auto first = static_cast<JDIMENSION>(std::max<int64_t>(0, part.left - kMargin));
  const int64_t end = std::min(all, part.left + part.size.width + kMargin);
  auto width = static_cast<JDIMENSION>(end - first);
  if (width < all) jpeg_crop_scanline(&reader.decompress, &first, &width);
  return first;
}

void read_pixels(JpegReader& reader) {
  jpeg_decompress_struct& decompress = reader.decompress;
  const bool is_ink = decompress.num_components == kInkChannels;
  decompress.out_color_space = is_ink ? JCS_CMYK : JCS_RGB;
  decompress.scale_num = 1;
  decompress.scale_denom = static_cast<unsigned>(reader.part.shrink);
  decompress.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&decompress);
  const Region part = reader.part.scaled();
  const auto first = static_cast<int64_t>(crop_columns(reader, part));
  const int channels = decompress.output_components;
  const auto row_bytes =
      static_cast<std::size_t>(decompress.output_width) * static_cast<std::size_t>(channels);
  reader.row = static_cast<uint8_t*>(
      (*decompress.mem->alloc_large)(reinterpret_cast<j_common_ptr>(&decompress), JPOOL_IMAGE, row_bytes));
  if (part.top > kMargin) jpeg_skip_scanlines(&decompress, static_cast<JDIMENSION>(part.top - kMargin));
  for (int64_t y = decompress.output_scanline; y < part.top; ++y) read_row(reader);
  for (int64_t y = 0; y < part.size.height; ++y) {
    read_row(reader);
    const uint8_t* from = reader.row + (part.left - first) * channels;
    uint8_t* to = reader.pixels + y * part.size.width * 3;
    if (is_ink)
      inks_to_rgb(from, part.size.width, to);
    else
      std::memcpy(to, from, static_cast<std::size_t>(part.size.width * 3));
  }
  // What follows the last row is read to see if the file is whole.
  if (decompress.output_scanline == decompress.output_height) jpeg_finish_decompress(&decompress);
}

bool runs(JpegReader& reader, void (*step)(JpegReader&)) {
  if (setjmp(reader.leave) != 0) return false;
  step(reader);
  return true;
}

struct CloseJpeg {
  void operator()(JpegReader* reader) const {
    jpeg_destroy_decompress(&reader->decompress);
    delete reader;
  }
};

// A JPEG file whose header has been read.
class OpenJpeg {
 public:
  explicit OpenJpeg(FileBytes file) : reader_(new JpegReader{}) {
    reader_->decompress.err = jpeg_std_error(&reader_->errors);
    reader_->decompress.client_data = reader_.get();
    reader_->errors.error_exit = leave_with_error;
    reader_->errors.emit_message = ignore_message;
    reader_->source = {.next_input_byte = reinterpret_cast<const JOCTET*>(file.data()),
                       .bytes_in_buffer = file.size(),
                       .init_source = nothing,
                       .fill_input_buffer = refuse_end,
                       .skip_input_data = skip_bytes,
                       .resync_to_restart = jpeg_resync_to_restart,
                       .term_source = nothing};
    run(read_header);
  }
  ImageSize size() const {
    return {static_cast<int64_t>(reader_->decompress.image_height),
            static_cast<int64_t>(reader_->decompress.image_width)};
  }
  void decode(const ScaledPart& part, uint8_t* pixels) {
    reader_->part = part;
    reader_->pixels = pixels;
    run(read_pixels);
  }

 private:
  void run(void (*step)(JpegReader&)) {
    if (runs(*reader_, step)) return;
    const std::string message = reader_->message;
    throw UserError("no readable JPEG file: " + message);
  }

  std::unique_ptr<JpegReader, CloseJpeg> reader_;
};

}  // namespace

Region ScaledPart::scaled() const {
  const auto rounded = [this](int64_t place) { return (place + shrink / 2) / shrink; };
  const int64_t top = rounded(part.top), left = rounded(part.left);
  return {
      top, left, {rounded(part.top + part.size.height) - top, rounded(part.left + part.size.width) - left}};
}

ImageSize jpeg_size(FileBytes file) { return OpenJpeg(file).size(); }

void decode_jpeg(FileBytes file, const ScaledPart& part, uint8_t* pixels) {
  OpenJpeg(file).decode(part, pixels);
}

}  // namespace tutti
