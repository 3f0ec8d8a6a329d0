#include "data/proposals/mask_values.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <span>

#include "data/images/formats.h"
#include "runtime/error.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLookedAt = 1000, kMostMaskBytes = std::size_t{1} << 30;
constexpr int64_t kMostMaskPixels = int64_t{1} << 27;
constexpr int64_t kIgnoredValue = 255;
constexpr int64_t kManyGaps = 4;  // times as many values as there are

using Present = std::array<bool, 256>;

void look_at_mask(const std::string& path, Present& present) try {
  const RegularFile file(path, kMostMaskBytes);
  if (!file.problem().empty()) throw UserError(file.problem());
  const std::string text = file.text();
  const FileBytes bytes = std::as_bytes(std::span(text.data(), text.size()));
  const ImageSize size = png_size(bytes);
  if (size.height < 1 || size.width < 1 || size.height > kMostMaskPixels / size.width)
    throw UserError("a mask of too many pixels");
  std::vector<uint8_t> values(static_cast<std::size_t>(size.height * size.width));
  decode_png_values(bytes, values.data());
  for (const uint8_t value : values) present[value] = true;
} catch (const UserError& error) {
  throw UserError({path}, error.message());
}

std::vector<int64_t> values_in(const Present& present) {
  std::vector<int64_t> values;
  for (std::size_t value = 0; value < present.size(); ++value)
    if (present[value]) values.push_back(static_cast<int64_t>(value));
  return values;
}

RecipeLine values_line(const std::vector<int64_t>& values) {
  std::string list;
  for (const int64_t value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return {"mask_values", '[' + list + ']', "the pixels' value of each class, in their order"};
}

}  // namespace

MaskValues look_at_mask_values(const std::vector<std::string>& files) {
  Present present{};
  for (std::size_t i = 0; i < std::min(files.size(), kMostLookedAt); ++i) {
    if (lower_case(fs::path(files[i]).extension().string()) != ".png") return {};
    look_at_mask(files[i], present);
  }
  std::vector<int64_t> values = values_in(present);
  MaskValues masks;
  if (values == std::vector<int64_t>{0, kIgnoredValue}) {
    masks.classes = 2;
    masks.data = {values_line(values)};
    return masks;
  }
  if (values.size() > 1 && values.back() == kIgnoredValue) {
    values.pop_back();
    masks.model = {{"ignore_index", "255", "pixels of this value do not count"}};
  }
  const int64_t end = values.back() + 1;
  const bool has_gaps = end > kManyGaps * std::ssize(values);
  masks.classes = has_gaps ? std::ssize(values) : end;
  masks.data = {has_gaps
                    ? values_line(values)
                    : RecipeLine{"num_classes", std::to_string(end), "the values of the masks are below"}};
  return masks;
}

void add_masks(Proposal& proposal, const std::vector<std::string>& files) {
  const MaskValues masks = look_at_mask_values(files);
  if (masks.classes > 0) proposal.summary += " of " + std::to_string(masks.classes) + " classes";
  std::get<ImageSamples>(proposal.samples).targets = ImageTargets::kMask;
  proposal.model = masks.model;
  proposal.metrics = {"MIoU", "CrossEntropy"};
  for (RecipeLines* lines : {&proposal.train, &proposal.eval})
    if (!lines->empty()) lines->insert(lines->end(), masks.data.begin(), masks.data.end());
  if (!proposal.train.empty()) proposal.train[0].comment = proposal.summary;
}

}  // namespace tutti
