#include <cctype>
#include <cmath>
#include <string>

#include "data/images/formats.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kMostDeep = 65535;
constexpr int kMostDigits = 9;

[[noreturn]] void fail_pnm(const std::string& why) {
  throw UserError("no readable PPM, PGM or PBM file: " + why);
}

// "P6", sizes, the largest value, and where the pixels begin; comments run from # to the line's end.
class Pnm {
 public:
  explicit Pnm(FileBytes file) : file_(file), kind_(static_cast<char>(file[1])) {
    size_.width = number();
    size_.height = number();
    most_ = is_bits() ? 1 : number();
    if (most_ < 1 || most_ > kMostDeep) fail_pnm("a largest value of " + std::to_string(most_));
    if (most_ > UINT8_MAX && channels() == 1) fail_pnm("it has 16 bits of gray, and 8 are read");
    if (!is_text()) ++at_;  // a single space
  }

  const ImageSize& size() const { return size_; }

  void decode(uint8_t* pixels) {
    const int64_t values = size_.width * channels();
    for (int64_t y = 0; y < size_.height; ++y)
      for (int64_t x = 0; x < values; ++x) {
        const uint8_t value = scaled(is_text() ? text_value() : stored(x));
        for (int64_t c = 0; c < 3 / channels(); ++c) *pixels++ = value;
      }
  }

 private:
  bool is_text() const { return kind_ < '4'; }
  bool is_bits() const { return kind_ == '1' || kind_ == '4'; }
  int64_t channels() const { return kind_ == '3' || kind_ == '6' ? 3 : 1; }

  int next() {
    if (at_ >= file_.size()) fail_pnm("the file is truncated");
    return static_cast<int>(file_[at_++]);
  }
  void skip_spaces() {
    while (at_ < file_.size()) {
      const int c = static_cast<int>(file_[at_]);
      if (c == '#')
        while (at_ < file_.size() && file_[at_] != std::byte{'\n'}) ++at_;
      else if (std::isspace(c))
        ++at_;
      else
        return;
    }
  }
  int64_t number() {
    skip_spaces();
    int64_t value = 0;
    int digits = 0;
    for (; digits <= kMostDigits && at_ < file_.size() && std::isdigit(static_cast<int>(file_[at_]));
         ++digits)
      value = 10 * value + (next() - '0');
    if (digits == 0 && at_ >= file_.size()) fail_pnm("the file is truncated");
    if (digits == 0 || digits > kMostDigits) fail_pnm("expected a number at byte " + std::to_string(at_));
    return value;
  }
  int64_t text_value() {
    if (!is_bits()) return number();
    skip_spaces();
    const int digit = next();
    if (digit != '0' && digit != '1') fail_pnm("expected 0 or 1 at byte " + std::to_string(at_ - 1));
    return '1' - digit;
  }
  // Value `x` of a row. Of bits, 1 is black.
  int64_t stored(int64_t x) {
    if (is_bits()) {
      if (x % 8 == 0) bits_ = next();
      return 1 - (bits_ >> (7 - x % 8) & 1);
    }
    const int high = next();
    return most_ > UINT8_MAX ? high << 8 | next() : high;
  }
  // As Pillow rounds.
  uint8_t scaled(int64_t value) const {
    if (most_ == UINT8_MAX && value <= most_) return static_cast<uint8_t>(value);
    const double part = static_cast<double>(value) / static_cast<double>(most_) * UINT8_MAX;
    return static_cast<uint8_t>(std::fmin(UINT8_MAX, std::nearbyint(part)));
  }

  FileBytes file_;
  char kind_;
  ImageSize size_;
  int64_t most_ = 0;
  std::size_t at_ = 2;
  int bits_ = 0;
};

}  // namespace

ImageSize pnm_size(FileBytes file) { return Pnm(file).size(); }

void decode_pnm(FileBytes file, const ImageSize&, uint8_t* pixels) { Pnm(file).decode(pixels); }

}  // namespace tutti
