#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "data/images/formats.h"
#include "io/number_at.h"
#include "runtime/error.h"

namespace tutti {
namespace {

enum class BmpPacking : uint32_t { kNone = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kMasksWithAlpha = 6 };

[[noreturn]] void fail_bmp(const std::string& why) { throw UserError("no readable BMP file: " + why); }

// The header, and where colors and pixels are.
struct BmpHeader {
  static constexpr std::size_t kFile = 14, kCore = 12, kInfo = 40, kLongest = 124;  // bytes
  static constexpr std::size_t kWithMasks = 52;

  explicit BmpHeader(FileBytes file) : file_(file) {
    header_bytes = at<uint32_t>(kFile);
    first_pixel = at<uint32_t>(10);
    if (header_bytes != kCore && (header_bytes < kInfo || header_bytes > kLongest))
      fail_bmp("a header of " + std::to_string(header_bytes) + " bytes");
    const bool is_core = header_bytes == kCore;
    const int64_t rows = is_core ? at<uint16_t>(20) : int64_t{at<int32_t>(22)};
    size = {rows < 0 ? -rows : rows, is_core ? at<uint16_t>(18) : int64_t{at<int32_t>(18)}};
    is_downward = rows < 0;
    bits = at<uint16_t>(is_core ? 24 : 28);
    if (!is_core) packing = static_cast<BmpPacking>(at<uint32_t>(30));
    require_known();
    if (bits <= 8) read_colors(is_core ? 3 : 4, is_core ? 0 : at<uint32_t>(46));
    if (bits > 8) read_masks();
  }

  template <class Number>
  Number at(std::size_t place) const {
    if (place + sizeof(Number) > file_.size()) fail_bmp("the file is truncated");
    return number_at<Number>(file_, place);
  }

  std::size_t header_bytes, first_pixel;
  ImageSize size;
  bool is_downward;
  int bits;
  BmpPacking packing = BmpPacking::kNone;
  std::array<std::array<uint8_t, 3>, 256> colors{};  // of `bits` up to 8
  std::array<uint32_t, 3> masks{};                   // of more

 private:
  void require_known() const {
    using enum BmpPacking;
    const bool is_known = (packing == kNone && (std::has_single_bit(unsigned(bits)) || bits == 24) &&
                           bits <= 32 && bits != 2) ||
                          (packing == kRle8 && bits == 8) || (packing == kRle4 && bits == 4) ||
                          ((packing == kMasks || packing == kMasksWithAlpha) && (bits == 16 || bits == 32));
    if (!is_known)
      fail_bmp(std::to_string(bits) + " bits a pixel with compression " +
               std::to_string(static_cast<uint32_t>(packing)) + " are not read");
  }

  void read_colors(std::size_t entry, uint32_t declared) {
    const std::size_t most = std::size_t{1} << bits, first = kFile + header_bytes;
    const std::size_t room = first_pixel > first ? (first_pixel - first) / entry : 0;
    const std::size_t count = std::min({declared == 0 ? most : declared, most, room});
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t c = 0; c < 3; ++c) colors[i][c] = at<uint8_t>(first + i * entry + 2 - c);
  }

  void read_masks() {
    masks = bits == 16 ? std::array<uint32_t, 3>{0x7C00, 0x03E0, 0x001F}
                       : std::array<uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
    if (packing != BmpPacking::kNone)
      for (std::size_t c = 0; c < 3; ++c) masks[c] = at<uint32_t>(kFile + kInfo + 4 * c);
  }

  FileBytes file_;
};

// A color of the bits of a mask, from 0 to 255.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  return static_cast<uint8_t>(uint64_t{(pixel & mask) >> shift} * 255 / (mask >> shift));
}

// Rows of palette's indices, one byte each, of run lengths; in the order of the file.
class BmpRuns {
 public:
  BmpRuns(FileBytes bytes, const BmpHeader& header)
      : bytes_(bytes),
        is_nibbles_(header.packing == BmpPacking::kRle4),
        width_(header.size.width),
        rows_(header.size.height),
        indices_(static_cast<std::size_t>(width_ * rows_)) {}

  std::vector<uint8_t> read() {
    while (y_ < rows_ && step()) {
    }
    return std::move(indices_);
  }

 private:
  enum Escape : uint8_t { kEndOfRow = 0, kEnd = 1, kMove = 2 };

  uint8_t next() {
    if (at_ == bytes_.size()) fail_bmp("the file is truncated");
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  void put(uint8_t index) {
    if (x_ < width_) indices_[static_cast<std::size_t>(y_ * width_ + x_++)] = index;
  }
  void put_pair(uint8_t pair, int place) {
    put(is_nibbles_ ? (place % 2 == 0 ? pair >> 4 : pair & 15) : pair);
  }
  // False at the end of the image.
  bool step() {
    const int count = next();
    const uint8_t value = next();
    for (int i = 0; i < count; ++i) put_pair(value, i);
    if (count > 0) return true;
    if (value == kEnd) return false;
    if (value == kEndOfRow) {
      ++y_;
      x_ = 0;
    } else if (value == kMove) {
      x_ = std::min<int64_t>(x_ + next(), width_);
      y_ += next();
    } else {
      literal(value);
    }
    return true;
  }
  void literal(int count) {
    const std::size_t begin = at_;
    uint8_t pair = 0;
    for (int i = 0; i < count; ++i) {
      if (!is_nibbles_ || i % 2 == 0) pair = next();
      put_pair(pair, i);
    }
    if ((at_ - begin) % 2 != 0 && at_ < bytes_.size()) ++at_;
  }

  FileBytes bytes_;
  bool is_nibbles_;
  int64_t width_, rows_;
  std::vector<uint8_t> indices_;
  std::size_t at_ = 0;
  int64_t x_ = 0, y_ = 0;
};

void put_color(const BmpHeader& header, std::size_t index, uint8_t* pixel) {
  std::ranges::copy(header.colors[index], pixel);
}

void read_row(const BmpHeader& header, FileBytes row, uint8_t* pixels) {
  const auto width = static_cast<std::size_t>(header.size.width);
  const auto bits = static_cast<std::size_t>(header.bits);
  for (std::size_t x = 0; x < width; ++x, pixels += 3) {
    if (bits <= 8) {
      const std::size_t place = x * bits;
      const auto byte = static_cast<std::size_t>(row[place / 8]);
      put_color(header, byte >> (8 - bits - place % 8) & ((1U << bits) - 1), pixels);
    } else if (bits == 24) {
      for (std::size_t c = 0; c < 3; ++c) pixels[c] = static_cast<uint8_t>(row[3 * x + 2 - c]);
    } else {
      const uint32_t pixel = bits == 16 ? number_at<uint16_t>(row, 2 * x) : number_at<uint32_t>(row, 4 * x);
      for (std::size_t c = 0; c < 3; ++c) pixels[c] = masked(pixel, header.masks[c]);
    }
  }
}

}  // namespace

ImageSize bmp_size(FileBytes file) { return BmpHeader(file).size; }

void decode_bmp(FileBytes file, const ImageSize& size, uint8_t* pixels) {
  const BmpHeader header(file);
  const FileBytes data = file.subspan(std::min(header.first_pixel, file.size()));
  const bool has_runs = header.packing == BmpPacking::kRle8 || header.packing == BmpPacking::kRle4;
  const auto width = static_cast<std::size_t>(size.width), rows = static_cast<std::size_t>(size.height);
  const std::size_t row_bytes = (width * static_cast<std::size_t>(header.bits) + 31) / 32 * 4;
  if (!has_runs && data.size() < row_bytes * rows) fail_bmp("the file is truncated");
  const std::vector<uint8_t> runs = has_runs ? BmpRuns(data, header).read() : std::vector<uint8_t>();
  for (std::size_t y = 0; y < rows; ++y) {
    uint8_t* row = pixels + 3 * width * (header.is_downward ? y : rows - 1 - y);
    if (!has_runs) read_row(header, data.subspan(y * row_bytes, row_bytes), row);
    for (std::size_t x = 0; x < width && has_runs; ++x) put_color(header, runs[y * width + x], row + 3 * x);
  }
}

}  // namespace tutti
