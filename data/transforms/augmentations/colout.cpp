#include "data/transforms/augmentations/colout.h"

#include <memory>
#include <string>

#include "data/transforms/picked_pixels.h"

namespace tutti {
namespace {

int64_t kept_of(int64_t size, double dropped) {
  return static_cast<int64_t>((1.0 - dropped) * static_cast<double>(size));
}

at::Tensor draw_kept(int64_t size, double dropped, Draws& draws) {
  return std::get<0>(draws.permutation(size).narrow(0, 0, kept_of(size, dropped)).sort());
}

bool is_resized(const at::Tensor& input, const at::Tensor& target, const ColOutOptions& options) {
  const bool same_size =
      target.dim() > 2 && target.sizes().slice(target.dim() - 2) == input.sizes().slice(input.dim() - 2);
  return options.resize_target.value_or(same_size);
}

class ColOutTransform final : public ImageTransform {
 public:
  ColOutTransform(double p_row, double p_col) : options_{.p_row = p_row, .p_col = p_col} {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return on_planes(image, [&](const at::Tensor& planes) { return colout_batch(planes, draws, options_); });
  }

  ImageSize size(const ImageSize& before) const override {
    const ImageSize after{kept_of(before.height, options_.p_row), kept_of(before.width, options_.p_col)};
    if (after.height < 1) throw TransformError("p_row", "no row of an image would be left");
    if (after.width < 1) throw TransformError("p_col", "no column of an image would be left");
    return after;
  }
  bool moves_pixels() const override { return false; }

 private:
  ColOutOptions options_;
};

}  // namespace

at::Tensor colout_batch(const at::Tensor& input, Draws& draws, const ColOutOptions& options) {
  const at::Tensor rows = draw_kept(input.size(-2), options.p_row, draws);
  return pixels_at(input, rows, draw_kept(input.size(-1), options.p_col, draws));
}

std::pair<at::Tensor, at::Tensor> colout_batch(const at::Tensor& input, const at::Tensor& target,
                                               Draws& draws, const ColOutOptions& options) {
  const at::Tensor rows = draw_kept(input.size(-2), options.p_row, draws);
  const at::Tensor columns = draw_kept(input.size(-1), options.p_col, draws);
  return {pixels_at(input, rows, columns),
          is_resized(input, target, options) ? pixels_at(target, rows, columns) : target};
}

TransformPtr colout_transform(double p_row, double p_col) {
  return std::make_shared<ColOutTransform>(p_row, p_col);
}

TransformPtr ColOutOptions::make(const Setting&, const SampleSpec&) const {
  return colout_transform(p_row, p_col);
}

}  // namespace tutti
