#include "data/transforms/geometry.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "tensors/ignored_target.h"

namespace tutti {
namespace {

using Border = Geometry::Border;

// The places of an edge of `size` pixels with `before` and `after` more around, from which numpy.pad would
// take values.
at::Tensor padded_places(int64_t size, int64_t before, int64_t after, const std::string& mode) {
  const at::Tensor places = at::empty({before + size + after}, at::kLong);
  auto* place = places.mutable_data_ptr<int64_t>();
  const int64_t mirrored = mode == "symmetric" ? 1 : 0;  // pixels at the edge are repeated
  for (int64_t i = -before; i < size + after; ++i) {
    int64_t from = i;
    if (mode != "edge" && i < 0) from = -i - mirrored;
    if (mode != "edge" && i >= size) from = 2 * (size - 1) - i + mirrored;
    *place++ = std::clamp<int64_t>(from, 0, size - 1);
  }
  return places;
}

at::Tensor padded(const at::Tensor& image, int64_t height, const Border& border, double fill) {
  const auto [left, top, right, bottom] = border.padding;
  if (border.mode != "constant")
    return image.index_select(height, padded_places(image.size(height), top, bottom, border.mode))
        .index_select(height + 1, padded_places(image.size(height + 1), left, right, border.mode));
  std::vector<int64_t> sides{left, right, top, bottom};  // of the last dimensions first
  for (int64_t dim = height + 2; dim < image.dim(); ++dim) sides.insert(sides.begin(), {0, 0});
  return at::constant_pad_nd(image, sides, fill);
}

at::Tensor cropped(const at::Tensor& image, int64_t height, const Region& part) {
  return image.narrow(height, part.top, part.size.height).narrow(height + 1, part.left, part.size.width);
}

at::Tensor mirrored(const at::Tensor& image, int64_t height, const Geometry& geometry) {
  std::vector<int64_t> dims;
  if (geometry.mirrors_rows) dims.push_back(height);
  if (geometry.mirrors_columns) dims.push_back(height + 1);
  return dims.empty() ? image : at::flip(image, dims);
}

at::Tensor interpolated(const at::Tensor& image, const ImageSize& size, Interpolation interpolation) {
  if (size == image_size(image)) return image;
  // [height, width, channels] becomes a batch of "channels last", for which there are faster kernels.
  const bool are_last = image.scalar_type() == at::kByte && image.dim() == 3;
  const at::Tensor batch = are_last           ? image.unsqueeze(0).permute({0, 3, 1, 2})
                           : image.dim() == 2 ? image.unsqueeze(0).unsqueeze(0)
                                              : image.unsqueeze(0);
  const std::vector<int64_t> to{size.height, size.width};
  const at::Tensor made = interpolation == Interpolation::kBicubic
                              ? at::_upsample_bicubic2d_aa(batch, to, /*align_corners=*/false)
                              : at::_upsample_bilinear2d_aa(batch, to, /*align_corners=*/false);
  if (are_last) return made.permute({0, 2, 3, 1}).squeeze(0);
  return image.dim() == 2 ? made.squeeze(0).squeeze(0) : made.squeeze(0);
}

// The rows or columns that torch.nn.functional.interpolate(mode="nearest") takes, in its arithmetic.
at::Tensor nearest_places(int64_t from, int64_t to) {
  const at::Tensor places = at::empty({to}, at::kLong);
  auto* place = places.mutable_data_ptr<int64_t>();
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i)
    place[i] = std::min(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), from - 1);
  return places;
}

at::Tensor with_nearest(const at::Tensor& mask, int64_t dim, int64_t size) {
  return mask.size(dim) == size ? mask : mask.index_select(dim, nearest_places(mask.size(dim), size));
}

// 0 or 1 of the dimensions is the height of images of this size; -1 if the array is none of their masks.
int64_t mask_height(const Shape& shape, const ImageSize& image) {
  const int64_t dims = std::ssize(shape);
  for (const int64_t dim : {int64_t{0}, dims - 2}) {
    if (dims < 2) break;
    const auto d = static_cast<std::size_t>(dim);
    if (shape[d] == image.height && shape[d + 1] == image.width) return dim;
  }
  return -1;
}

at::Tensor stacked(const std::vector<at::Tensor>& rows) {
  return rows.size() == 1 ? rows[0].unsqueeze(0) : at::stack(rows);
}

}  // namespace

at::Tensor placed(const at::Tensor& image, const Geometry& geometry) {
  const int64_t height = height_dim(image);
  at::Tensor whole = image;
  for (const Border& border : geometry.borders) whole = padded(whole, height, border, border.fill);
  const at::Tensor part = cropped(whole, height, geometry.part);
  return mirrored(interpolated(part, geometry.result, geometry.interpolation), height, geometry);
}

NeededPart needed_part(const Geometry& geometry, const ImageSize& image) {
  if (geometry.borders.empty()) return {geometry.part, geometry.result};
  return {{0, 0, image}, image};
}

at::Tensor placed_part(const at::Tensor& part, const Geometry& geometry) {
  if (!geometry.borders.empty()) return placed(part, geometry);
  Geometry rest = geometry;
  rest.part = {0, 0, image_size(part)};
  return placed(part, rest);
}

at::Tensor placed_mask(const at::Tensor& mask, int64_t height, const Geometry& geometry) {
  const double fill = mask.scalar_type() == at::kLong ? static_cast<double>(kIgnoredTarget) : 0;
  at::Tensor whole = mask;
  for (const Border& border : geometry.borders) whole = padded(whole, height, border, fill);
  const at::Tensor part = cropped(whole, height, geometry.part);
  const at::Tensor rows = with_nearest(part, height, geometry.result.height);
  return mirrored(with_nearest(rows, height + 1, geometry.result.width), height, geometry);
}

at::Tensor placed_boxes(const at::Tensor& boxes, const Geometry& geometry) {
  const auto& [part, result] = std::pair(geometry.part, geometry.result);
  int64_t left = -part.left, top = -part.top;
  for (const Border& border : geometry.borders) {
    left += border.padding[0];
    top += border.padding[1];
  }
  const auto moved = [&](int64_t first, int64_t shift, int64_t from, int64_t to, bool mirrors) {
    const double scale = static_cast<double>(to) / static_cast<double>(from);
    const auto place = [&](int64_t column) {
      const at::Tensor inside = boxes.select(1, column).add(shift).clamp(0, from).mul(scale);
      return mirrors ? inside.neg().add(to) : inside;
    };
    std::pair edges(place(first), place(first + 2));
    if (mirrors) std::swap(edges.first, edges.second);
    return edges;
  };
  const auto [x1, x2] = moved(0, left, part.size.width, result.width, geometry.mirrors_columns);
  const auto [y1, y2] = moved(1, top, part.size.height, result.height, geometry.mirrors_rows);
  return at::stack({x1, y1, x2, y2}, 1);
}

PixelArrays PixelArrays::of(const SampleSpec& samples) {
  PixelArrays arrays{.boxes = samples.boxes};
  const auto input = samples.shapes.find(kInputArray);
  if (input == samples.shapes.end() || input->second.size() < 2) return arrays;
  const auto [shape, dtype] = input_of(samples, at::kByte);
  const auto height = static_cast<std::size_t>(height_dim(dtype, std::ssize(shape)));
  const ImageSize image{shape[height], shape[height + 1]};
  for (const auto& [name, sizes] : samples.shapes)
    if (const int64_t dim = mask_height(sizes, image); name != kInputArray && dim >= 0)
      arrays.masks[name] = dim;
  return arrays;
}

SampleSpec GeometricTransform::spec(const SampleSpec& before) const {
  const auto [height, image] = image_of(before, /*needs_bytes=*/false);
  const ImageSize after = image == kUnknownImageSize ? common_size() : size(image);
  SampleSpec samples = before;
  const auto set_size = [&](const std::string& array, std::size_t dim) {
    samples.shapes[array][dim] = after.height;
    samples.shapes[array][dim + 1] = after.width;
  };
  set_size(kInputArray, height);
  for (const auto& [mask, dim] : arrays_.masks) set_size(mask, static_cast<std::size_t>(dim));
  SampleSpec others = before;
  for (const auto& [mask, dim] : arrays_.masks) others.shapes.erase(mask);
  if (others.boxes == arrays_.boxes) others.boxes.clear();
  require_no_other_pixels(others, image);
  return samples;
}

void GeometricTransform::apply(Batch& batch, const RowDraws& draws) const {
  const at::Tensor images = batch[kInputArray];
  std::map<std::string, std::vector<at::Tensor>> changed;
  for (int64_t row = 0; row < images.size(0); ++row) {
    const at::Tensor image = images.select(0, row);
    const Geometry moves = geometry(image_size(image), *draws(row));
    changed[kInputArray].push_back(placed(image, moves));
    for (const auto& [name, height] : arrays_.masks)
      changed[name].push_back(placed_mask(batch[name].select(0, row), height, moves));
    for (const std::string& name : arrays_.boxes)
      changed[name].push_back(placed_boxes(batch[name].select(0, row), moves));
  }
  for (const auto& [name, rows] : changed) batch.set(name, stacked(rows));
}

}  // namespace tutti
