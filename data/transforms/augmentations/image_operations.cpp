#include "data/transforms/augmentations/image_operations.h"

#include <array>
#include <limits>

#include "data/transforms/augmentations/affine_operations.h"
#include "data/transforms/augmentations/color_operations.h"
#include "runtime/error.h"

namespace tutti {
namespace {

int64_t whole(double parameter) { return static_cast<int64_t>(parameter); }

double no_parameter(double, const at::Tensor&, Draws&) { return std::numeric_limits<double>::quiet_NaN(); }

// A level drawn for one image, of a range of parameters that ends at `largest`.
double part_of(double largest, double level, Draws& draws) {
  return draws.uniform(0.1, level) * largest / 10;
}

double whole_part_of(double largest, double level, Draws& draws) {
  return static_cast<double>(whole(part_of(largest, level, draws)));
}

bool coin(Draws& draws) { return draws.uniform(0, 1) > 0.5; }

double either_sign(double parameter, Draws& draws) { return coin(draws) ? -parameter : parameter; }

double draw_bits(double level, const at::Tensor&, Draws& draws) { return 4 - whole_part_of(4, level, draws); }

double draw_degrees(double level, const at::Tensor&, Draws& draws) {
  return either_sign(whole_part_of(30, level, draws), draws);
}

double draw_threshold(double level, const at::Tensor&, Draws& draws) {
  return 256 - whole_part_of(256, level, draws);
}

double draw_shear(double level, const at::Tensor&, Draws& draws) {
  return either_sign(part_of(0.3, level, draws), draws);
}

// A shift by up to a third of the image.
double draw_shift(double level, const at::Tensor& image, int64_t dim, Draws& draws) {
  return either_sign(whole_part_of(static_cast<double>(image.size(dim)) / 3, level, draws), draws);
}

double draw_shift_x(double level, const at::Tensor& image, Draws& draws) {
  return draw_shift(level, image, 1, draws);
}

double draw_shift_y(double level, const at::Tensor& image, Draws& draws) {
  return draw_shift(level, image, 0, draws);
}

// Above 1 (stronger) as often as below (weaker).
double draw_factor(double level, const at::Tensor&, Draws& draws) {
  return coin(draws) ? draws.uniform(1, level) : draws.uniform(1 - 0.09 * level, 1);
}

double draw_brightness(double level, const at::Tensor& image, Draws& draws) {
  const double factor = draw_factor(level, image, draws);
  return factor > 1 ? factor * 0.75 : factor;
}

double draw_original_factor(double level, const at::Tensor&, Draws& draws) {
  return part_of(1.8, level, draws) + 0.1;
}

at::Tensor apply_autocontrast(const at::Tensor& image, double) { return autocontrast(image); }
at::Tensor apply_equalize(const at::Tensor& image, double) { return equalize(image); }

template <at::Tensor (*kOperation)(const at::Tensor&, int64_t)>
at::Tensor apply_whole(const at::Tensor& image, double parameter) {
  return kOperation(image, whole(parameter));
}

constexpr std::array<ImageOperation, 17> kOperations = {{
    {"autocontrast", no_parameter, apply_autocontrast},
    {"equalize", no_parameter, apply_equalize},
    {"posterize", draw_bits, apply_whole<posterize>},
    {"rotate", draw_degrees, rotate},
    {"solarize", draw_threshold, apply_whole<solarize>},
    {"shear_x", draw_shear, shear_x},
    {"shear_y", draw_shear, shear_y},
    {"translate_x", draw_shift_x, apply_whole<translate_x>},
    {"translate_y", draw_shift_y, apply_whole<translate_y>},
    {"color", draw_factor, enhance_color},
    {"contrast", draw_factor, enhance_contrast},
    {"brightness", draw_brightness, enhance_brightness},
    {"sharpness", draw_factor, enhance_sharpness},
    {"color_original", draw_original_factor, enhance_color},
    {"contrast_original", draw_original_factor, enhance_contrast},
    {"brightness_original", draw_original_factor, enhance_brightness},
    {"sharpness_original", draw_original_factor, enhance_sharpness},
}};
constexpr auto kSafe = kOperations.begin() + 9;
constexpr auto kAll = kSafe + 4;

}  // namespace

at::Tensor ImageOperation::operator()(const at::Tensor& image, double level, Draws& draws) const {
  return apply(image, draw(level, image, draws));
}

std::span<const ImageOperation> image_operations() { return kOperations; }

std::vector<ImageOperation> augmentation_set(const std::string& name) {
  std::vector<ImageOperation> operations(kOperations.begin(), name == "all" ? kAll : kSafe);
  if (name == "original") operations.insert(operations.end(), kAll, kOperations.end());
  if (name == "all" || name == "safe" || name == "original") return operations;
  throw UserError("augmentation_set: expected all, safe or original, found '" + name + "'");
}

const ImageOperation& draw_operation(std::span<const ImageOperation> operations, Draws& draws) {
  return operations[static_cast<size_t>(draws.integer(0, static_cast<int64_t>(operations.size())))];
}

}  // namespace tutti
