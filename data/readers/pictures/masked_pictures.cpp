#include "data/readers/pictures/masked_pictures.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "data/readers/image_folder.h"
#include "data/readers/opened.h"
#include "io/image_folders.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kMaskValues = 256, kUsualIgnored = 255;
constexpr int64_t kNoClass = -1;

std::vector<int64_t> classes_of_values(const MaskedPictures::Options& options) {
  std::vector<int64_t> classes(kMaskValues, kNoClass);
  const auto set = [&](int64_t value, int64_t number) { classes[static_cast<std::size_t>(value)] = number; };
  for (int64_t value = 0; options.values.empty() && value < std::min(options.classes, kMaskValues); ++value)
    set(value, value);
  for (std::size_t i = 0; i < options.values.size(); ++i) set(options.values[i], static_cast<int64_t>(i));
  if (options.ignore_index >= 0 && options.ignore_index < kMaskValues)
    set(options.ignore_index, options.ignore_index);
  return classes;
}

void require_counts(const MaskedPictures::Options& options) {
  const auto named = std::ssize(options.values);
  if (named > 0 && options.classes > 0 && named != options.classes)
    throw WrongKey("mask_values", {},
                   "expected a value for each of the " + std::to_string(options.classes) +
                       " classes, found " + std::to_string(named));
  std::vector<int64_t> values = options.values;
  std::ranges::sort(values);
  if (const auto twin = std::ranges::adjacent_find(values); twin != values.end())
    throw WrongKey("mask_values", {}, "two classes have the value " + std::to_string(*twin));
  if (std::ranges::binary_search(values, options.ignore_index))
    throw WrongKey("mask_values", {},
                   "the value " + std::to_string(options.ignore_index) +
                       " is model.ignore_index, too, whose pixels are no class; leave one of the two out");
}

// Values that usual masks have, and that would not be meant as classes.
void require_usual(const std::array<bool, kMaskValues>& present, const std::string& file) {
  if (!present[kUsualIgnored]) return;
  if (present[0] && std::ranges::count(present, true) == 2)
    throw WrongKey("mask_values", {},
                   "the masks have the values 0 and 255, such as " + file +
                       "; mask_values = [0, 255] makes the classes 0 and 1 of them");
  throw WrongKey("num_classes", {},
                 "the masks have pixels of 255, such as " + file +
                     ", which mark in most data what does not count: [model] ignore_index = 255 says so; "
                     "num_classes = 256 if 255 is a class, and mask_values lists the values of classes");
}

// Names that have no counterpart. "" = none.
std::string alone_text(const std::vector<std::string>& paths, const char* single, const char* several) {
  if (paths.empty()) return "";
  return grouped(std::ssize(paths)) + (paths.size() == 1 ? single : several) + " left out, such as " +
         paths[0];
}

void require_masks_elsewhere(const ImageFolderOptions& options) {
  const auto below = std::filesystem::path(options.masks)
                         .lexically_normal()
                         .lexically_relative(std::filesystem::path(options.path).lexically_normal());
  if (!below.empty() && *below.begin() != "..")
    throw WrongKey("masks", {}, "expected a folder outside of path, where all files are pictures");
}

}  // namespace

MaskedPictures::MaskedPictures(PictureFiles pictures, PictureFiles masks, const Options& options)
    : PictureSource(std::move(pictures)), masks_(std::move(masks)), options_(options) {
  require_counts(options_);
  if (options_.classes == 0) options_.classes = std::ssize(options_.values);
  if (options_.classes == 0) find_classes();
  class_of_value_ = classes_of_values(options_);
}

at::Tensor MaskedPictures::values_of(int64_t index) const {
  std::vector<std::byte> buffer;
  return decode_mask(masks_.read(index, buffer), options_.most_pixels);
}

void MaskedPictures::find_classes() {
  if (masks_.size() > kLookedAt)
    throw WrongKey(
        "num_classes", {},
        "expected num_classes: to look for the classes of " + grouped(masks_.size()) + " masks takes long");
  std::array<bool, kMaskValues> present{};
  std::string unusual;  // the file of a mask with 255
  for (int64_t i = 0; i < masks_.size(); ++i) try {
      const at::Tensor values = values_of(i);
      const std::span pixels(values.const_data_ptr<uint8_t>(), static_cast<std::size_t>(values.numel()));
      for (const uint8_t value : pixels) present[value] = true;
      if (unusual.empty() && present[kUsualIgnored]) unusual = masks_.file(i);
    } catch (const UserError& error) {
      throw UserError({masks_.file(i)}, error.message());
    }
  if (options_.ignore_index >= 0 && options_.ignore_index < kMaskValues)
    present[static_cast<std::size_t>(options_.ignore_index)] = false;
  require_usual(present, unusual);
  for (int64_t value = 0; value < kMaskValues; ++value)
    if (present[static_cast<std::size_t>(value)]) options_.classes = value + 1;
  if (options_.classes == 0) throw UserError({masks_.file(0)}, "no mask has a pixel that counts");
}

at::Tensor MaskedPictures::target_tensor(int64_t index) const try {
  const at::Tensor values = values_of(index);
  const at::Tensor classes = at::empty(values.sizes(), at::kLong);
  auto* to = classes.mutable_data_ptr<int64_t>();
  const std::span pixels(values.const_data_ptr<uint8_t>(), static_cast<std::size_t>(values.numel()));
  for (const uint8_t value : pixels) {
    const int64_t number = class_of_value_[value];
    if (number == kNoClass)
      throw UserError("a pixel of value " + std::to_string(value) + " is no class: " +
                      (options_.values.empty() ? "not in [0, " + std::to_string(options_.classes) + ")"
                                               : "none of mask_values"));
    *to++ = number;
  }
  return classes;
} catch (const UserError& error) {
  throw UserError("its mask " + masks_.file(index) + ": " + error.message());
}

uint64_t MaskedPictures::digest() const {
  const std::array<uint64_t, 2> files{PictureSource::digest(), masks_.digest()};
  return XXH3_64bits_withSeed(class_of_value_.data(), class_of_value_.size() * sizeof(class_of_value_[0]),
                              XXH3_64bits(files.data(), sizeof files));
}

ImageSourcePtr open_masked_folder(const ImageFolderOptions& options, int64_t ignore_index) {
  require_masks_elsewhere(options);
  const MaskedImages images = masked_images(options.path, options.masks);
  if (!images.twins.empty())
    throw WrongKey("masks", {}, "two masks of one name: " + images.twins[0] + " and " + images.twins[1]);
  if (images.pairs.empty() && images.without_picture.empty())
    throw WrongKey("masks", {}, no_image_text(images.other_masks));
  if (images.pairs.empty())
    throw WrongKey("masks", {},
                   images.without_mask.empty()
                       ? no_image_text(images.other_pictures)
                       : "no mask has the name of a picture in " + options.path + ": " +
                             images.without_picture[0] + ", and " + images.without_mask[0]);
  PictureFiles pictures(options.path), their_masks(options.masks);
  for (const auto& [picture, mask] : images.pairs) {
    pictures.add(picture);
    their_masks.add(mask);
  }
  const auto names = given_classes(options);
  auto source = std::make_shared<MaskedPictures>(
      std::move(pictures), std::move(their_masks),
      MaskedPictures::Options{.values = options.mask_values,
                              .classes = options.num_classes > 0 ? options.num_classes : std::ssize(names),
                              .ignore_index = ignore_index,
                              .most_pixels = options.max_image_pixels});
  std::string advice;
  for (const std::string& text :
       {alone_text(images.without_mask, " picture without a mask is", " pictures without a mask are"),
        alone_text(images.without_picture, " mask without a picture is", " masks without a picture are"),
        images.other_pictures.text()})
    if (!text.empty()) advice += (advice.empty() ? "" : "; ") + text;
  if (!advice.empty()) source->set_advice(options.path + ": " + advice);
  return source;
}

DatasetPtr ImageFolderOptions::make(const Setting& section, const DataEnvironment& environment) const {
  if (masks.empty()) {
    if (!mask_values.empty()) section.at("mask_values").fail_key("is for masks");
    return open_image_files(section, *this, open_image_folder);
  }
  if (!list.empty())
    section.at("list").fail_key("excludes masks: kind = \"image_table\" has both in a table");
  require_classes_once(section, *this);
  return opened(section, [&] {
    return std::make_shared<const ImageFiles>(open_masked_folder(*this, environment.ignore_index), *this);
  });
}

}  // namespace tutti
