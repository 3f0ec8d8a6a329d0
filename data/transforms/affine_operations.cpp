#include "data/transforms/affine_operations.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/transforms/pixels.h"

namespace tutti {
namespace {

struct Spot {
  double x, y;
};

// Where the pixels of a row come from. The sums are those of Pillow, in its order; as a rounded sum is
// monotone in x, a condition on a row's spots holds for neighbouring pixels.
class RowSource {
 public:
  RowSource(const AffineMatrix& matrix, int64_t width)
      : matrix_(matrix), x_(static_cast<size_t>(width)), y_(static_cast<size_t>(width)) {
    for (size_t x = 0; x < x_.size(); ++x) {
      x_[x] = matrix[0] * (static_cast<double>(x) + 0.5);
      y_[x] = matrix[3] * (static_cast<double>(x) + 0.5);
    }
  }

  void begin_row(int64_t y) {
    row_x_ = matrix_[1] * (static_cast<double>(y) + 0.5);
    row_y_ = matrix_[4] * (static_cast<double>(y) + 0.5);
  }

  Spot at(int64_t x) const {
    const auto column = static_cast<size_t>(x);
    return {x_[column] + row_x_ + matrix_[2], y_[column] + row_y_ + matrix_[5]};
  }

 private:
  AffineMatrix matrix_;
  std::vector<double> x_, y_;
  double row_x_ = 0, row_y_ = 0;
};

struct Source {
  const uint8_t* data;
  int64_t height, width;
};

// The pixels [first, last) of a row.
struct Part {
  int64_t first, last;
};

template <class Condition>
Part part_where(Part whole, const Condition& holds) {
  while (whole.first < whole.last && !holds(whole.first)) ++whole.first;
  while (whole.last > whole.first && !holds(whole.last - 1)) --whole.last;
  return whole;
}

double lerp(int a, int b, double weight) { return a + (b - a) * weight; }

// The mean of four neighbours, the upper two at `upper` and `upper + right`.
template <int kChannels>
inline void mix(const uint8_t* upper, const uint8_t* lower, int64_t right, double dx, double dy,
                uint8_t* out) {
  for (int c = 0; c < kChannels; ++c) {
    const double above = lerp(upper[c], upper[right + c], dx);
    const double below = lerp(lower[c], lower[right + c], dx);
    out[c] = static_cast<uint8_t>(static_cast<int>(above + (below - above) * dy));
  }
}

// A pixel from within the image, maybe at its edge, where the outer neighbours are those at the edge.
template <int kChannels>
void mix_at_edge(const Source& in, Spot spot, uint8_t* out) {
  const double x = std::floor(spot.x - 0.5), y = std::floor(spot.y - 0.5);
  const auto clamped = [](double place, int64_t size) {
    return std::clamp<int64_t>(static_cast<int64_t>(place), 0, size - 1);
  };
  const int64_t left = clamped(x, in.width), right = clamped(x + 1, in.width);
  const uint8_t* upper = in.data + (clamped(y, in.height) * in.width + left) * kChannels;
  const uint8_t* lower = in.data + (clamped(y + 1, in.height) * in.width + left) * kChannels;
  mix<kChannels>(upper, lower, (right - left) * kChannels, spot.x - 0.5 - x, spot.y - 0.5 - y, out);
}

template <int kChannels>
void fill_row(const Source& in, const RowSource& source, uint8_t* out) {
  const double width = static_cast<double>(in.width), height = static_cast<double>(in.height);
  const Part held = part_where({0, in.width}, [&](int64_t x) {
    const Spot spot = source.at(x);
    return spot.x >= 0 && spot.x < width && spot.y >= 0 && spot.y < height;
  });
  const Part inner = part_where(held, [&](int64_t x) {
    const Spot spot = source.at(x);
    return spot.x >= 0.5 && spot.x - 0.5 < width - 1 && spot.y >= 0.5 && spot.y - 0.5 < height - 1;
  });
  std::fill(out, out + held.first * kChannels, uint8_t{0});
  for (int64_t x = held.first; x < inner.first; ++x)
    mix_at_edge<kChannels>(in, source.at(x), out + x * kChannels);
  for (int64_t x = inner.first; x < inner.last; ++x) {
    const Spot spot = source.at(x);
    const double place_x = spot.x - 0.5, place_y = spot.y - 0.5;
    const auto left = static_cast<int>(place_x), top = static_cast<int>(place_y);
    const uint8_t* upper = in.data + (top * in.width + left) * kChannels;
    mix<kChannels>(upper, upper + in.width * kChannels, kChannels, place_x - left, place_y - top,
                   out + x * kChannels);
  }
  for (int64_t x = inner.last; x < held.last; ++x)
    mix_at_edge<kChannels>(in, source.at(x), out + x * kChannels);
  std::fill(out + held.last * kChannels, out + in.width * kChannels, uint8_t{0});
}

// To 15 decimals, halves to even, as Python's round(number, 15).
double rounded(double number) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed, 15).ptr;
  std::from_chars(text, end, number);
  return number;
}

at::Tensor translated(const at::Tensor& image, int64_t dim, int64_t pixels) {
  const at::Tensor in = require_pixels(image);
  at::Tensor out = at::zeros(in.sizes(), in.options());
  const int64_t kept = in.size(dim) - std::abs(pixels);
  const int64_t from = std::max<int64_t>(pixels, 0), to = std::max<int64_t>(-pixels, 0);
  if (kept > 0) out.narrow(dim, to, kept).copy_(in.narrow(dim, from, kept));
  return out;
}

}  // namespace

at::Tensor affine(const at::Tensor& image, const AffineMatrix& matrix) {
  const at::Tensor in = require_pixels(image);
  const at::Tensor out = at::empty(in.sizes(), in.options());
  const Source pixels{in.const_data_ptr<uint8_t>(), in.size(0), in.size(1)};
  const auto fill = in.size(2) == 3 ? fill_row<3> : fill_row<1>;
  RowSource source(matrix, pixels.width);
  for (int64_t y = 0; y < pixels.height; ++y) {
    source.begin_row(y);
    fill(pixels, source, out.mutable_data_ptr<uint8_t>() + y * pixels.width * in.size(2));
  }
  return out;
}

at::Tensor rotate(const at::Tensor& image, double degrees) {
  require_pixels(image);
  double positive = std::fmod(degrees, 360.0);
  if (positive < 0) positive += 360;
  if (positive == 0) return image.clone(at::MemoryFormat::Contiguous);
  const double angle = -(positive * (std::numbers::pi / 180));
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double x = static_cast<double>(image.size(1)) / 2, y = static_cast<double>(image.size(0)) / 2;
  return affine(image,
                {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y});
}

at::Tensor shear_x(const at::Tensor& image, double factor) { return affine(image, {1, factor, 0, 0, 1, 0}); }

at::Tensor shear_y(const at::Tensor& image, double factor) { return affine(image, {1, 0, 0, factor, 1, 0}); }

at::Tensor translate_x(const at::Tensor& image, int64_t pixels) { return translated(image, 1, pixels); }

at::Tensor translate_y(const at::Tensor& image, int64_t pixels) { return translated(image, 0, pixels); }

}  // namespace tutti
