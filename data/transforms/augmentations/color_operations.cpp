#include "data/transforms/augmentations/color_operations.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "data/transforms/pixels.h"
#include "runtime/error.h"
#include "tensors/vectors.h"

namespace tutti {
namespace {

using ByteTable = std::array<uint8_t, 256>;
using Histogram = std::array<uint32_t, 256>;

// The bytes of an image, and those of the result.
struct Retouch {
  explicit Retouch(const at::Tensor& original)
      : image(require_pixels(original)),
        result(at::empty(image.sizes(), image.options())),
        in(image.const_data_ptr<uint8_t>()),
        out(result.mutable_data_ptr<uint8_t>()),
        pixels(image.size(0) * image.size(1)),
        channels(image.size(2)) {}

  at::Tensor image, result;
  const uint8_t* in;
  uint8_t* out;
  int64_t pixels, channels;
};

// Neighbours are often equal: two sets of counters, so that one count need not wait for the one before.
template <int kChannels>
std::vector<Histogram> count_values(const uint8_t* in, int64_t pixels) {
  std::vector<Histogram> even(kChannels, Histogram{}), odd = even;
  for (int64_t p = 0; p + 1 < pixels; p += 2) {
    for (int c = 0; c < kChannels; ++c) {
      ++even[c][in[p * kChannels + c]];
      ++odd[c][in[(p + 1) * kChannels + c]];
    }
  }
  for (int c = 0; c < kChannels; ++c) {
    if (pixels % 2 == 1) ++even[c][in[(pixels - 1) * kChannels + c]];
    for (int value = 0; value < 256; ++value) even[c][value] += odd[c][value];
  }
  return even;
}

std::vector<Histogram> histograms(const Retouch& retouch) {
  return retouch.channels == 3 ? count_values<3>(retouch.in, retouch.pixels)
                               : count_values<1>(retouch.in, retouch.pixels);
}

void look_up(const uint8_t* __restrict in, int64_t count, const ByteTable& table, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

// Maps each channel by its own table.
void look_up(const Retouch& retouch, const std::vector<ByteTable>& tables) {
  if (retouch.channels == 1) return look_up(retouch.in, retouch.pixels, tables[0], retouch.out);
  const uint8_t* __restrict in = retouch.in;
  uint8_t* __restrict out = retouch.out;
  const uint8_t* const red = tables[0].data();
  const uint8_t* const green = tables[1].data();
  const uint8_t* const blue = tables[2].data();
  for (const uint8_t* end = in + 3 * retouch.pixels; in < end; in += 3, out += 3) {
    out[0] = red[in[0]];
    out[1] = green[in[1]];
    out[2] = blue[in[2]];
  }
}

ByteTable same_values() {
  ByteTable table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  return table;
}

ByteTable stretched(const Histogram& counts) {
  const auto used = [](uint32_t count) { return count > 0; };
  const int64_t low = std::find_if(counts.begin(), counts.end(), used) - counts.begin();
  const int64_t high = 255 - (std::find_if(counts.rbegin(), counts.rend(), used) - counts.rbegin());
  if (high <= low) return same_values();
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  ByteTable table;
  for (int value = 0; value < 256; ++value)
    table[value] = static_cast<uint8_t>(std::clamp(static_cast<int>(value * scale + offset), 0, 255));
  return table;
}

ByteTable equalized(const Histogram& counts, int64_t pixels) {
  const uint32_t highest = *std::find_if(counts.rbegin(), counts.rend(), [](uint32_t n) { return n > 0; });
  const uint32_t step = (static_cast<uint32_t>(pixels) - highest) / 255;
  if (step == 0) return same_values();
  ByteTable table;
  uint32_t below = step / 2;
  for (int value = 0; value < 256; ++value) {
    table[value] = static_cast<uint8_t>(std::min(below / step, 255U));
    below += counts[value];
  }
  return table;
}

TUTTI_VECTORS void keep_bits(const uint8_t* __restrict in, int64_t count, uint8_t mask,
                             uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] & mask;
}

TUTTI_VECTORS void invert_from(const uint8_t* __restrict in, int64_t count, uint8_t threshold,
                               uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] < threshold ? in[i] : static_cast<uint8_t>(255 - in[i]);
}

// Between two values the sum needs no clamping and is not changed by it.
inline uint8_t blended(int degenerate, int image, float factor) {
  const float sum = static_cast<float>(degenerate) + factor * static_cast<float>(image - degenerate);
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(sum, 0.0F), 255.0F)));
}

TUTTI_VECTORS void blend(const uint8_t* __restrict degenerate, const uint8_t* __restrict image, int64_t count,
                         float factor, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = blended(degenerate[i], image[i], factor);
}

TUTTI_VECTORS void blend_constant(uint8_t degenerate, const uint8_t* __restrict image, int64_t count,
                                  float factor, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = blended(degenerate, image[i], factor);
}

// ITU-R 601-2 luma, in 16 bits after the point.
inline uint32_t gray_of(const uint8_t* rgb) {
  return (19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16;
}

TUTTI_VECTORS void blend_with_gray(const uint8_t* __restrict in, int64_t pixels, float factor,
                                   uint8_t* __restrict out) {
  for (int64_t p = 0; p < pixels; ++p) {
    const int gray = static_cast<int>(gray_of(in + 3 * p));
    for (int c = 0; c < 3; ++c) out[3 * p + c] = blended(gray, in[3 * p + c], factor);
  }
}

TUTTI_VECTORS uint32_t sum_of_gray(const uint8_t* rgb, int64_t pixels) {
  uint32_t sum = 0;
  for (int64_t p = 0; p < pixels; ++p) sum += gray_of(rgb + 3 * p);
  return sum;
}

TUTTI_VECTORS uint32_t sum_of_values(const uint8_t* values, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

uint8_t mean_of_gray(const Retouch& retouch) {
  const auto sum = retouch.channels == 3 ? sum_of_gray : sum_of_values;
  constexpr int64_t kPart = 1 << 20;  // sums of 32 bits hold that many pixels
  int64_t total = 0;
  for (int64_t first = 0; first < retouch.pixels; first += kPart)
    total += sum(retouch.in + first * retouch.channels, std::min(kPart, retouch.pixels - first));
  return static_cast<uint8_t>(static_cast<double>(total) / static_cast<double>(retouch.pixels) + 0.5);
}

// A row smoothed: (sum of nine pixels + 4 times the one in the middle) / 13, rounded to nearest. Pillow sums
// in float32, which comes to the same: a quotient by 13 is at least 1/26 away from where rounding changes.
TUTTI_VECTORS void smooth(const uint8_t* __restrict in, int64_t row_bytes, int64_t count, int64_t channels,
                          uint8_t* __restrict out) {
  const uint8_t* above = in - row_bytes;
  const uint8_t* below = in + row_bytes;
  for (int64_t i = 0; i < count; ++i) {
    const int sum = above[i - channels] + above[i] + above[i + channels] + in[i - channels] + 5 * in[i] +
                    in[i + channels] + below[i - channels] + below[i] + below[i + channels];
    out[i] = static_cast<uint8_t>(static_cast<uint16_t>(sum + 6) / 13);
  }
}

// A pixel in Pillow's arithmetic (Convert.c).
struct Hsv {
  uint8_t hue, saturation, value;
};

Hsv to_hsv(const uint8_t* rgb) {
  const int most = std::max({rgb[0], rgb[1], rgb[2]}), least = std::min({rgb[0], rgb[1], rgb[2]});
  if (most == least) return {0, 0, static_cast<uint8_t>(most)};
  const auto range = static_cast<float>(most - least);
  const auto below = [&](int c) { return static_cast<float>(most - rgb[c]) / range; };
  double hue = 0;
  if (rgb[0] == most)
    hue = below(2) - below(1);
  else if (rgb[1] == most)
    hue = static_cast<float>(2.0 + below(0) - below(2));
  else
    hue = static_cast<float>(4.0 + below(1) - below(0));
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const float saturation = range / static_cast<float>(most);
  return {static_cast<uint8_t>(std::clamp(static_cast<int>(hue * 255.0), 0, 255)),
          static_cast<uint8_t>(std::clamp(static_cast<int>(saturation * 255.0), 0, 255)),
          static_cast<uint8_t>(most)};
}

void to_rgb(const Hsv& hsv, uint8_t* rgb) {
  const auto value = static_cast<float>(hsv.value);
  const float saturation = static_cast<float>(hsv.saturation) / 255.0F;
  const float place = static_cast<float>(hsv.hue) * 6.0F / 255.0F;
  const auto sector = static_cast<int>(std::floor(place));
  const float rest = place - static_cast<float>(sector);
  const auto scaled = [&](float by) {
    return static_cast<uint8_t>(std::clamp(static_cast<int>(std::round(value * (1.0F - by))), 0, 255));
  };
  const uint8_t v = hsv.value, p = scaled(saturation), q = scaled(saturation * rest),
                t = scaled(saturation * (1.0F - rest));
  const uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sectors[sector % 6], 3, rgb);
}

}  // namespace

at::Tensor autocontrast(const at::Tensor& image) {
  const Retouch retouch(image);
  std::vector<ByteTable> tables;
  for (const Histogram& counts : histograms(retouch)) tables.push_back(stretched(counts));
  look_up(retouch, tables);
  return retouch.result;
}

at::Tensor equalize(const at::Tensor& image) {
  const Retouch retouch(image);
  std::vector<ByteTable> tables;
  for (const Histogram& counts : histograms(retouch)) tables.push_back(equalized(counts, retouch.pixels));
  look_up(retouch, tables);
  return retouch.result;
}

at::Tensor posterize(const at::Tensor& image, int64_t bits) {
  TUTTI_ASSERT(bits >= 0 && bits <= 8, "a value has 8 bits");
  const Retouch retouch(image);
  keep_bits(retouch.in, image.numel(), static_cast<uint8_t>(256 - (256 >> bits)), retouch.out);
  return retouch.result;
}

at::Tensor solarize(const at::Tensor& image, int64_t threshold) {
  const Retouch retouch(image);
  if (threshold > 255) return retouch.image.clone();
  invert_from(retouch.in, image.numel(), static_cast<uint8_t>(std::max<int64_t>(threshold, 0)), retouch.out);
  return retouch.result;
}

at::Tensor enhance_color(const at::Tensor& image, double factor) {
  const Retouch retouch(image);
  if (retouch.channels == 1) return retouch.image.clone();
  blend_with_gray(retouch.in, retouch.pixels, static_cast<float>(factor), retouch.out);
  return retouch.result;
}

at::Tensor enhance_contrast(const at::Tensor& image, double factor) {
  const Retouch retouch(image);
  blend_constant(mean_of_gray(retouch), retouch.in, image.numel(), static_cast<float>(factor), retouch.out);
  return retouch.result;
}

at::Tensor enhance_brightness(const at::Tensor& image, double factor) {
  const Retouch retouch(image);
  blend_constant(0, retouch.in, image.numel(), static_cast<float>(factor), retouch.out);
  return retouch.result;
}

at::Tensor enhance_sharpness(const at::Tensor& image, double factor) {
  const Retouch retouch(image);
  const int64_t height = image.size(0);
  const int64_t row_bytes = image.size(1) * retouch.channels;
  const int64_t inner_bytes = row_bytes - 2 * retouch.channels;
  std::copy_n(retouch.in, image.numel(), retouch.out);  // pixels at the border are not smoothed
  if (inner_bytes <= 0) return retouch.result;
  std::vector<uint8_t> smoothed(static_cast<size_t>(inner_bytes));
  for (int64_t y = 1; y < height - 1; ++y) {
    const int64_t first = y * row_bytes + retouch.channels;
    smooth(retouch.in + first, row_bytes, inner_bytes, retouch.channels, smoothed.data());
    blend(smoothed.data(), retouch.in + first, inner_bytes, static_cast<float>(factor), retouch.out + first);
  }
  return retouch.result;
}

at::Tensor adjust_hue(const at::Tensor& image, double factor) {
  const Retouch retouch(image);
  if (retouch.channels == 1) return retouch.image.clone();
  const auto turn = static_cast<uint8_t>(static_cast<int>(factor * 255) & 255);
  for (int64_t i = 0; i < 3 * retouch.pixels; i += 3) {
    Hsv hsv = to_hsv(retouch.in + i);
    hsv.hue = static_cast<uint8_t>(hsv.hue + turn);
    to_rgb(hsv, retouch.out + i);
  }
  return retouch.result;
}

}  // namespace tutti
