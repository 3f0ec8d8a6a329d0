#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "data/images/formats.h"
#include "io/number_at.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Colors = std::vector<std::array<uint8_t, 3>>;

[[noreturn]] void fail_gif(const std::string& why) { throw UserError("no readable GIF file: " + why); }

// A file's bytes, front to back.
class GifBytes {
 public:
  explicit GifBytes(FileBytes file) : file_(file) {}

  uint8_t byte() { return take<uint8_t>(); }
  int64_t number() { return take<uint16_t>(); }
  void skip(std::size_t bytes) {
    require(bytes);
    at_ += bytes;
  }
  Colors colors(int packed) {
    Colors colors(std::size_t{2} << (packed & 7));
    for (auto& color : colors)
      for (uint8_t& value : color) value = byte();
    return colors;
  }
  // The blocks up to an empty one, joined.
  std::vector<uint8_t> blocks() {
    std::vector<uint8_t> joined;
    while (const std::size_t count = byte()) {
      require(count);
      const auto* first = reinterpret_cast<const uint8_t*>(file_.data() + at_);
      joined.insert(joined.end(), first, first + count);
      at_ += count;
    }
    return joined;
  }

 private:
  void require(std::size_t bytes) const {
    if (file_.size() - at_ < bytes) fail_gif("the file is truncated");
  }
  template <class Number>
  Number take() {
    require(sizeof(Number));
    at_ += sizeof(Number);
    return number_at<Number>(file_, at_ - sizeof(Number));
  }

  FileBytes file_;
  std::size_t at_ = 0;
};

constexpr uint8_t kExtension = 0x21, kGraphicControl = 0xF9, kImage = 0x2C;
constexpr int kHasColors = 0x80, kIsInterlaced = 0x40;
constexpr int kLongestCode = 12, kMostCodes = 1 << kLongestCode;

// The first frame, up to its data, and the canvas around it.
struct GifFrame {
  explicit GifFrame(GifBytes& bytes) {
    bytes.skip(6);  // "GIF89a"
    canvas.width = bytes.number();
    canvas.height = bytes.number();
    const int packed = bytes.byte();
    bytes.skip(2);
    if (packed & kHasColors) colors = bytes.colors(packed);
    for (uint8_t block = bytes.byte(); block != kImage; block = bytes.byte()) {
      if (block != kExtension) fail_gif("it has no image");
      const bool is_control = bytes.byte() == kGraphicControl;
      const std::vector<uint8_t> values = bytes.blocks();
      if (is_control && values.size() >= 4 && values[0] & 1) background = values[3];
    }
    part.left = bytes.number();
    part.top = bytes.number();
    part.size.width = bytes.number();
    part.size.height = bytes.number();
    const int flags = bytes.byte();
    if (flags & kHasColors) colors = bytes.colors(flags);
    is_interlaced = flags & kIsInterlaced;
    canvas.width = std::max(canvas.width, part.left + part.size.width);
    canvas.height = std::max(canvas.height, part.top + part.size.height);
  }

  ImageSize canvas;
  Region part;
  Colors colors;           // empty: gray
  uint8_t background = 0;  // the color that is transparent, if there is one
  bool is_interlaced = false;

  void put(uint8_t index, uint8_t* pixel) const {
    constexpr std::array<uint8_t, 3> kBlack{};
    if (colors.empty())
      std::fill_n(pixel, 3, index);
    else
      std::ranges::copy(index < colors.size() ? colors[index] : kBlack, pixel);
  }
  // The row of the image that is stored as `row`.
  int64_t place(int64_t row) const {
    if (!is_interlaced) return row;
    for (const auto& [first, step] : {std::pair(0, 8), {4, 8}, {2, 4}, {1, 2}}) {
      const int64_t rows = (part.size.height - first + step - 1) / step;
      if (row < rows) return first + row * step;
      row -= std::max<int64_t>(rows, 0);
    }
    return part.size.height - 1;
  }
};

// Undoes GIF's form of LZW.
class GifCodes {
 public:
  GifCodes(const std::vector<uint8_t>& bytes, int least_bits)
      : bytes_(bytes), clear_(1 << least_bits), least_bits_(least_bits + 1) {
    reset();
  }

  // The next indices, at least one; empty at the end.
  const std::vector<uint8_t>& next() {
    text_.clear();
    for (int code = take(); code >= 0 && code != clear_ + 1; code = take()) {
      if (code == clear_) {
        reset();
        continue;
      }
      if (code > count_ || (code == count_ && last_ < 0)) fail_gif("its data are damaged");
      spell(code == count_ ? last_ : code);
      if (code == count_) text_.push_back(text_.front());
      if (last_ >= 0 && count_ < kMostCodes) {
        before_[count_] = static_cast<uint16_t>(last_);
        index_[count_] = text_.front();
        if (++count_ == 1 << bits_ && bits_ < kLongestCode) ++bits_;
      }
      last_ = code;
      break;
    }
    return text_;
  }

 private:
  void reset() {
    count_ = clear_ + 2;
    bits_ = least_bits_;
    last_ = -1;
  }
  // -1 at the end.
  int take() {
    while (held_ < bits_) {
      if (at_ == bytes_.size()) return -1;
      window_ |= uint32_t{bytes_[at_++]} << held_;
      held_ += 8;
    }
    const int code = static_cast<int>(window_ & ((1U << bits_) - 1));
    window_ >>= bits_;
    held_ -= bits_;
    return code;
  }
  void spell(int code) {
    for (; code >= clear_ + 2; code = before_[static_cast<std::size_t>(code)])
      text_.push_back(index_[static_cast<std::size_t>(code)]);
    text_.push_back(static_cast<uint8_t>(code));
    std::ranges::reverse(text_);
  }

  const std::vector<uint8_t>& bytes_;
  int clear_, least_bits_;
  int bits_ = 0, count_ = 0, last_ = -1, held_ = 0;
  uint32_t window_ = 0;
  std::size_t at_ = 0;
  std::array<uint16_t, kMostCodes> before_{};
  std::array<uint8_t, kMostCodes> index_{};
  std::vector<uint8_t> text_;
};

}  // namespace

ImageSize gif_size(FileBytes file) {
  GifBytes bytes(file);
  return GifFrame(bytes).canvas;
}

void decode_gif(FileBytes file, const ImageSize& size, uint8_t* pixels) {
  GifBytes bytes(file);
  const GifFrame frame(bytes);
  const int least_bits = bytes.byte();
  if (least_bits < 1 || least_bits > 8) fail_gif("its data are damaged");
  const std::vector<uint8_t> data = bytes.blocks();
  for (int64_t i = 0; i < size.height * size.width; ++i) frame.put(frame.background, pixels + 3 * i);
  GifCodes codes(data, least_bits);
  int64_t done = 0;
  const auto& [top, left, part] = frame.part;
  while (done < part.height * part.width) {
    const std::vector<uint8_t>& indices = codes.next();
    if (indices.empty()) fail_gif("the file is truncated");
    for (std::size_t i = 0; i < indices.size() && done < part.height * part.width; ++i, ++done) {
      const int64_t y = top + frame.place(done / part.width), x = left + done % part.width;
      frame.put(indices[i], pixels + 3 * (y * size.width + x));
    }
  }
}

}  // namespace tutti
