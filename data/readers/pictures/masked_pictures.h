#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/readers/image_files.h"
#include "data/readers/options.h"

namespace tutti {

// Pictures and their masks: "target" int64 [-1, -1], the class of each pixel of the picture. Masks are
// decoded as decode_mask says.
class MaskedPictures final : public PictureSource {
 public:
  struct Options {
    std::vector<int64_t> values = {};  // the pixels' value of each class; empty: the class itself
    int64_t classes = 0;               // values are below; 0: those of `values`, or of the data
    int64_t ignore_index = 0;          // a legal value, which stays, and is no class
    int64_t most_pixels = kMostPixelsOfAnImage;
  };

  static constexpr int64_t kLookedAt = 1000;  // masks, for the number of classes

  // `masks`: of each picture. Throws WrongKey if the number of classes is to come from the data, and there
  // are more than kLookedAt masks, or if their values may be meant otherwise; UserError with a mask's file.
  MaskedPictures(PictureFiles pictures, PictureFiles masks, const Options& options);

  std::optional<ImageTarget> target_form() const override {
    return ImageTarget{{kUnknownSize, kUnknownSize}, at::kLong};
  }
  at::Tensor target_tensor(int64_t index) const override;
  int64_t classes() const override { return options_.classes; }
  uint64_t digest() const override;

 private:
  at::Tensor values_of(int64_t index) const;  // uint8
  void find_classes();

  PictureFiles masks_;
  Options options_;
  std::vector<int64_t> class_of_value_;  // [256]; kNoClass: no class
};

// The pictures of a folder with masks of the same names, but for the ending, in the folder `masks`; the
// others are counted in the advice. Throws UserError, WrongKey.
ImageSourcePtr open_masked_folder(const ImageFolderOptions& options, int64_t ignore_index);

}  // namespace tutti
