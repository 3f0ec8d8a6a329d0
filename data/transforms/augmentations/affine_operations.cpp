#include "data/transforms/augmentations/affine_operations.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "data/transforms/pixels.h"
#include "tensors/vectors.h"

namespace tutti {
namespace {

struct Spot {
  double x, y;
};

// The sources of a row's pixels. The sums are those of Pillow, in its order; as a rounded sum is monotone in
// x, a condition on a row's spots holds for neighbouring pixels.
struct RowSource {
  RowSource(const AffineMatrix& matrix, int64_t width)
      : matrix(matrix), columns_x(static_cast<size_t>(width)), columns_y(static_cast<size_t>(width)) {
    for (size_t x = 0; x < columns_x.size(); ++x) {
      columns_x[x] = matrix[0] * (static_cast<double>(x) + 0.5);
      columns_y[x] = matrix[3] * (static_cast<double>(x) + 0.5);
    }
  }

  void begin_row(int64_t y) {
    row_x = matrix[1] * (static_cast<double>(y) + 0.5);
    row_y = matrix[4] * (static_cast<double>(y) + 0.5);
  }

  Spot at(int64_t x) const {
    const auto column = static_cast<size_t>(x);
    return {columns_x[column] + row_x + matrix[2], columns_y[column] + row_y + matrix[5]};
  }

  AffineMatrix matrix;
  std::vector<double> columns_x, columns_y;
  double row_x = 0, row_y = 0;
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

// The value between four neighbours, truncated.
inline uint32_t mixed(int upper_left, int upper_right, int lower_left, int lower_right, double dx,
                      double dy) {
  const double above = upper_left + (upper_right - upper_left) * dx;
  const double below = lower_left + (lower_right - lower_left) * dx;
  return static_cast<uint32_t>(static_cast<int>(above + (below - above) * dy));
}

// A pixel from within the image, maybe at its edge, where the outer neighbours are those at the edge.
template <int kChannels>
void mix_at_edge(const Source& in, Spot spot, uint8_t* out) {
  const double x = std::floor(spot.x - 0.5), y = std::floor(spot.y - 0.5);
  const auto clamped = [](double place, int64_t size) {
    return std::clamp<int64_t>(static_cast<int64_t>(place), 0, size - 1);
  };
  const int64_t left = clamped(x, in.width), right = clamped(x + 1, in.width);
  const uint8_t* upper = in.data + clamped(y, in.height) * in.width * kChannels;
  const uint8_t* lower = in.data + clamped(y + 1, in.height) * in.width * kChannels;
  for (int64_t c = 0; c < kChannels; ++c) {
    const int64_t l = left * kChannels + c, r = right * kChannels + c;
    out[c] = static_cast<uint8_t>(
        mixed(upper[l], upper[r], lower[l], lower[r], spot.x - 0.5 - x, spot.y - 0.5 - y));
  }
}

// Up to 64 neighbouring pixels of a row whose sources have all four neighbours. A pixel is a word, with a
// byte for each channel, so that the loops over a strip turn into vectors.
struct Strip {
  static constexpr int64_t kSize = 64;

  int32_t left[kSize], top[kSize];  // of the upper left neighbour
  double dx[kSize], dy[kSize];      // from its middle
  uint32_t neighbours[4][kSize];
  uint32_t result[kSize];
};

TUTTI_VECTORS void locate(const RowSource& source, int64_t first, int64_t count, Strip& strip) {
  const double* columns_x = source.columns_x.data() + first;
  const double* columns_y = source.columns_y.data() + first;
  const double row_x = source.row_x, row_y = source.row_y, c = source.matrix[2], f = source.matrix[5];
  for (int64_t i = 0; i < count; ++i) {
    const double x = columns_x[i] + row_x + c - 0.5, y = columns_y[i] + row_y + f - 0.5;
    strip.left[i] = static_cast<int32_t>(x);
    strip.top[i] = static_cast<int32_t>(y);
    strip.dx[i] = x - strip.left[i];
    strip.dy[i] = y - strip.top[i];
  }
}

// Reads a pixel of three channels as four bytes.
template <int kChannels>
void read_neighbours(const Source& in, int64_t count, Strip& strip) {
  constexpr int kBytes = kChannels == 3 ? 4 : 1;
  const int64_t row_bytes = in.width * kChannels;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* upper = in.data + strip.top[i] * row_bytes + strip.left[i] * kChannels;
    for (int64_t n = 0; n < 4; ++n) {
      uint32_t pixel = 0;
      std::memcpy(&pixel, upper + (n / 2) * row_bytes + (n % 2) * kChannels, kBytes);
      strip.neighbours[n][i] = pixel;
    }
  }
}

TUTTI_VECTORS void mix(int64_t count, int channels, Strip& strip) {
  for (int64_t i = 0; i < count; ++i) strip.result[i] = 0;
  for (int shift = 0; shift < 8 * channels; shift += 8) {
    const auto value = [&](int n, int64_t i) {
      return static_cast<int>((strip.neighbours[n][i] >> shift) & 0xFF);
    };
    for (int64_t i = 0; i < count; ++i)
      strip.result[i] |= mixed(value(0, i), value(1, i), value(2, i), value(3, i), strip.dx[i], strip.dy[i])
                         << shift;
  }
}

template <int kChannels>
void mix_inside(const Source& in, const RowSource& source, Part part, uint8_t* out) {
  Strip strip;
  for (int64_t first = part.first; first < part.last; first += Strip::kSize) {
    const int64_t count = std::min(Strip::kSize, part.last - first);
    locate(source, first, count, strip);
    read_neighbours<kChannels>(in, count, strip);
    mix(count, kChannels, strip);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(out + (first + i) * kChannels, &strip.result[i], kChannels);
  }
}

template <int kChannels>
void fill_row(const Source& in, const RowSource& source, uint8_t* out) {
  const double width = static_cast<double>(in.width), height = static_cast<double>(in.height);
  const Part held = part_where({0, in.width}, [&](int64_t x) {
    const Spot spot = source.at(x);
    return spot.x >= 0 && spot.x < width && spot.y >= 0 && spot.y < height;
  });
  // A fourth byte must not lie beyond the image.
  const double last = kChannels == 3 ? width - 2 : width - 1;
  const Part inside = part_where(held, [&](int64_t x) {
    const Spot spot = source.at(x);
    return spot.x >= 0.5 && spot.x - 0.5 < last && spot.y >= 0.5 && spot.y - 0.5 < height - 1;
  });
  std::fill(out, out + held.first * kChannels, uint8_t{0});
  for (int64_t x = held.first; x < inside.first; ++x)
    mix_at_edge<kChannels>(in, source.at(x), out + x * kChannels);
  mix_inside<kChannels>(in, source, inside, out);
  for (int64_t x = inside.last; x < held.last; ++x)
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
