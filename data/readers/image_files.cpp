#include "data/readers/image_files.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "data/streams/sample_stream.h"
#include "data/transforms/transform.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kComparedSizes = 64;  // images that with_one_size looks at
constexpr int64_t kChannels = 3;

NeededPart whole_image(const ImageSize& size) { return {{0, 0, size}, size}; }

ImageSize size_of(const Batch& sample) {
  const at::Tensor image = sample[kInputArray];
  return {image.size(1), image.size(2)};
}

std::string size_text(const ImageSize& size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace

std::string ImageSource::short_name(int64_t index) const {
  const std::string place_text = place(index);
  return name(index) + (place_text.empty() ? "" : ": " + place_text);
}

at::Tensor ImageSource::image(int64_t index, const ChoosePart& choose, const Decoding& decoding) const {
  std::vector<std::byte> buffer;
  return decode_part(read(index, buffer), choose, decoding);
}

ImageSize ImageSource::image_size(int64_t index, int64_t most_pixels) const {
  std::vector<std::byte> buffer;
  return encoded_size(read(index, buffer), most_pixels);
}

void ReplacedSamples::note(const std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = why;
}

std::string ReplacedSamples::text() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return "";
  return std::to_string(count_) + " times " + what_ +
         " could not be read, and the next took its place; first " + first_;
}

ImageFiles::ImageFiles(ImageSourcePtr source, const ImageFileOptions& options, std::optional<ImageSize> size)
    : source_(std::move(source)), options_(options), size_(size) {}

SampleSpec ImageFiles::spec() const {
  const ImageSize size = size_.value_or(kUnknownImageSize);
  return {{{kInputArray, {size.height, size.width, kChannels}}, {kTargetArray, {}}},
          source_->classes(),
          {{kInputArray, at::kByte}, {kTargetArray, at::kLong}}};
}

std::string ImageFiles::describe(int64_t index) const {
  return source_->ImageSource::short_name(index) + ": sample " + std::to_string(index);
}

bool ImageFiles::try_part(int64_t index, const ChoosePart& choose, Batch& sample) const {
  const auto fail = [&](const UserError& error) {
    throw UserError({source_->name(index)},
                    describe(index).substr(source_->name(index).size() + 2) + ": " + error.message());
  };
  try {
    const at::Tensor image =
        source_->image(index, choose, {options_.scaled_decoding, options_.max_image_pixels});
    sample = TensorTree::Children{{kInputArray, image.unsqueeze(0)},
                                  {kTargetArray, at::full({1}, source_->target(index), at::kLong)}};
    return true;
  } catch (const StreamError&) {
    throw;
  } catch (const TransformError& error) {
    fail(error);
  } catch (const UserError& error) {
    if (options_.on_bad_sample == OnBadSample::kError) fail(error);
    replaced_.note(describe(index) + ": " + error.message());
  }
  return false;
}

Batch ImageFiles::get_part(int64_t index, const ChoosePart& choose) const {
  TUTTI_ASSERT(index >= 0 && (index < size() || source_->is_stream()), "sample " + std::to_string(index));
  Batch sample;
  for (int64_t i = 0; i < ReplacedSamples::kMost; ++i)
    if (try_part(source_->is_stream() ? index + i : (index + i) % size(), choose, sample)) return sample;
  throw UserError({source_->name(index)}, "sample " + std::to_string(index) + " and the " +
                                              std::to_string(ReplacedSamples::kMost - 1) +
                                              " after it cannot be read: " + replaced());
}

std::string ImageFiles::replaced() const {
  const std::string source_text = source_->replaced(), mine = replaced_.text();
  return source_text + (source_text.empty() || mine.empty() ? "" : "; ") + mine;
}

int64_t ImageFiles::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  const auto source_order = source_->order(seed, epoch, position, shuffle);
  return source_order ? *source_order : Dataset::order(seed, epoch, position, shuffle);
}

std::vector<int64_t> ImageFiles::targets() const {
  std::vector<int64_t> targets;
  if (!source_->knows_targets()) return targets;
  for (int64_t i = 0; i < size(); ++i) targets.push_back(source_->target(i));
  return targets;
}

Batch ImageFiles::get(std::span<const int64_t> indices, const Epoch&) const {
  const ImageSize known = size_.value_or(ImageSize{0, 0});
  if (indices.empty())
    return TensorTree::Children{
        {kInputArray, at::empty({0, known.height, known.width, kChannels}, at::kByte)},
        {kTargetArray, at::empty({0}, at::kLong)}};
  std::vector<at::Tensor> images, targets;
  std::optional<ImageSize> first = size_;
  for (const int64_t index : indices) {
    const Batch sample = get_part(index, whole_image);
    const ImageSize size = size_of(sample);
    if (!first) first = size;
    if (size != *first)
      throw UserError({source_->name(index)},
                      "sample " + std::to_string(index) + " is " + size_text(size) + ", and " +
                          (size_ ? describe(0) : describe(indices[0])) + " is " + size_text(*first) +
                          "; the transform resize or random_resized_crop makes them equal");
    images.push_back(sample[kInputArray][0]);
    targets.push_back(sample[kTargetArray][0]);
  }
  return TensorTree::Children{{kInputArray, at::stack(images)}, {kTargetArray, at::stack(targets)}};
}

void ImageFiles::scan() const {
  source_->scan();
  Batch sample;
  for (int64_t index = 0; index < size(); ++index) try_part(index, whole_image, sample);
}

std::shared_ptr<const ImageFiles> ImageFiles::with_one_size() const {
  const int64_t first = 0;
  const ImageSize size = size_of(get(std::span(&first, 1), {}));
  const auto same = std::make_shared<const ImageFiles>(source_, options_, size);
  const int64_t compared = std::min(kComparedSizes, this->size());
  for (int64_t i = 0; i < compared; ++i) {
    const int64_t index = source_->is_stream() ? i : i * this->size() / compared;
    ImageSize other = size;
    try {
      other = source_->image_size(index, options_.max_image_pixels);
    } catch (const UserError&) {
      continue;  // an error of its own once the sample is read
    }
    if (other != size)
      throw UserError(
          describe(0) + " is " + size_text(size) + ", " + describe(index) + " is " + size_text(other) +
          "; a batch needs images of one size: add random_resized_crop, resize = [height, width], "
          "or resize and center_crop");
  }
  return same;
}

}  // namespace tutti
