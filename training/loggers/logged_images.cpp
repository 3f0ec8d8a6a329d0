#include "training/loggers/logged_images.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>

namespace tutti {
namespace {

constexpr int64_t kImagesPerRow = 8;
constexpr float kWhite = 255.0F;

// The first `max_images` items of a batch, flattened, on the heap: data for loggers does not count as the
// step's memory.
template <class Number>
std::vector<Number> first_of(const at::Tensor& batch, int64_t max_images, at::ScalarType dtype) {
  const at::Tensor part = batch.detach().narrow(0, 0, std::min(max_images, batch.size(0)));
  std::vector<Number> numbers(static_cast<std::size_t>(part.numel()));
  if (!numbers.empty()) at::from_blob(numbers.data(), part.sizes(), dtype).copy_(part);
  return numbers;
}

at::Tensor with_channels_last(const at::Tensor& batch, bool are_last) {
  if (batch.dim() == 3) return batch.unsqueeze(-1);
  return are_last ? batch : batch.permute({0, 2, 3, 1});
}

void paint(const float* from, uint8_t* to, int64_t count, bool whole_numbers) {
  const auto [low, high] = std::minmax_element(from, from + count);
  float black = 0.0F, scale = 1.0F;
  if (!whole_numbers && *low < 0.0F) {
    black = *low;
    scale = *high > *low ? kWhite / (*high - *low) : 0.0F;
  } else if (!whole_numbers && *high <= 1.0F) {
    scale = kWhite;
  }
  std::transform(from, from + count, to, [&](float value) {
    const float shade = (value - black) * scale;
    return static_cast<uint8_t>(shade > 0.0F ? std::min(shade, kWhite) + 0.5F : 0.0F);  // NaN is black
  });
}

// Each group of three bits of the class gives the next lower bit of red, green and blue.
std::array<uint8_t, 3> colour_of(int32_t label) {
  std::array<uint8_t, 3> colour{};
  for (int bit = 7; bit >= 0; --bit, label >>= 3)
    for (int channel = 0; channel < 3; ++channel)
      colour[channel] |= static_cast<uint8_t>((label >> channel & 1) << bit);
  return colour;
}

}  // namespace

std::optional<LoggedImages> images_of(const std::string& name, const at::Tensor& batch, int64_t max_images,
                                      bool channels_last) {
  if (batch.dim() != 3 && batch.dim() != 4) return std::nullopt;
  const at::Tensor images = with_channels_last(batch, channels_last);
  LoggedImages logged{name, std::min(max_images, images.size(0)), images.size(1), images.size(2),
                      images.size(3)};
  const int64_t numbers = logged.height * logged.width * logged.channels;
  if ((logged.channels != 1 && logged.channels != 3) || numbers < 2 || images.is_complex())
    return std::nullopt;
  const bool whole_numbers = at::isIntegralType(batch.scalar_type(), /*includeBool=*/false);
  const auto values = first_of<float>(images, max_images, at::kFloat);
  logged.pixels.resize(values.size());
  for (int64_t i = 0; i < logged.count; ++i)
    paint(values.data() + i * numbers, logged.pixels.data() + i * numbers, numbers, whole_numbers);
  return logged;
}

std::optional<LoggedMask> mask_of_scores(const std::string& name, const at::Tensor& scores,
                                         int64_t max_images, bool channels_last) {
  if (scores.dim() != 4 || scores.numel() == 0 || scores.is_complex()) return std::nullopt;
  const at::Tensor last = with_channels_last(scores, channels_last);
  LoggedMask mask{name, last.size(1), last.size(2), {}};
  const auto values = first_of<float>(last, max_images, at::kFloat);
  const int64_t classes = last.size(3);
  for (auto at = values.begin(); at != values.end(); at += classes)
    mask.classes.push_back(static_cast<int32_t>(std::max_element(at, at + classes) - at));
  return mask;
}

std::optional<LoggedMask> mask_of_classes(const std::string& name, const at::Tensor& classes,
                                          int64_t max_images, int32_t ignored) {
  const bool whole_numbers = at::isIntegralType(classes.scalar_type(), /*includeBool=*/true);
  if (classes.dim() != 3 || classes.numel() == 0 || !whole_numbers) return std::nullopt;
  LoggedMask mask{name, classes.size(1), classes.size(2), first_of<int32_t>(classes, max_images, at::kInt)};
  for (int32_t& index : mask.classes)
    if (index < 0) index = ignored;
  return mask;
}

LoggedImages grid_of(const LoggedImages& images) {
  const int64_t across = std::max<int64_t>(1, std::min(images.count, kImagesPerRow));
  const int64_t down = (images.count + across - 1) / across;
  LoggedImages grid{images.name, 1, down * images.height, across * images.width, images.channels};
  grid.pixels.resize(static_cast<std::size_t>(grid.height * grid.width * grid.channels));
  const int64_t row = images.width * images.channels;
  for (int64_t i = 0; i < images.count; ++i)
    for (int64_t y = 0; y < images.height; ++y) {
      const int64_t from = (i * images.height + y) * row;
      const int64_t to = ((i / across * images.height + y) * across + i % across) * row;
      std::copy_n(images.pixels.begin() + from, row, grid.pixels.begin() + to);
    }
  return grid;
}

LoggedImages grid_of(const LoggedMask& mask) {
  const int64_t pixels = mask.height * mask.width;
  LoggedImages images{mask.name, std::ssize(mask.classes) / pixels, mask.height, mask.width, 3};
  for (const int32_t label : mask.classes) {
    const auto colour = colour_of(label);
    images.pixels.insert(images.pixels.end(), colour.begin(), colour.end());
  }
  return grid_of(images);
}

}  // namespace tutti
