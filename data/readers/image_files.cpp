#include "data/readers/image_files.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>

#include "data/streams/sample_stream.h"
#include "data/transforms/transform.h"
#include "runtime/error.h"
#include "tensors/ignored_target.h"

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

int64_t ImageSource::target(int64_t) const { return kIgnoredTarget; }

at::Tensor ImageSource::target_tensor(int64_t index) const { return at::full({}, target(index), at::kLong); }

at::Tensor ImageSource::targets() const {
  const auto form = target_form();
  if (!knows_targets() || !form || form->is_mask()) return {};
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < size(); ++i) targets.push_back(target(i));
  return at::tensor(targets);
}

at::Tensor ImageSource::image(int64_t index, const ChoosePart& choose, const Decoding& decoding) const {
  std::vector<std::byte> buffer;
  return decode_part(read(index, buffer), choose, decoding);
}

ImageSize ImageSource::image_size(int64_t index, int64_t most_pixels) const {
  std::vector<std::byte> buffer;
  return encoded_size(read(index, buffer), most_pixels);
}

void ReplacedSamples::note(const std::string& why, int64_t sample) const {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = why;
  why_.try_emplace(sample, why);
}

std::string ReplacedSamples::why(int64_t sample) const {
  const std::lock_guard lock(mutex_);
  const auto reason = why_.find(sample);
  return reason == why_.end() ? "" : reason->second;
}

std::string ReplacedSamples::text() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return "";
  return std::to_string(count_) + " times " + what_ +
         " could not be read, and the next took its place; first " + first_;
}

ImageFiles::ImageFiles(ImageSourcePtr source, const ImageReadOptions& options, std::optional<ImageSize> size)
    : source_(std::move(source)), options_(options), size_(size) {}

SampleSpec ImageFiles::spec() const {
  const ImageSize size = size_.value_or(kUnknownImageSize);
  SampleSpec spec{.shapes = {{kInputArray, {size.height, size.width, kChannels}}},
                  .classes = source_->classes(),
                  .dtypes = {{kInputArray, at::kByte}}};
  if (const auto target = source_->target_form()) {
    spec.shapes[kTargetArray] = target->is_mask() ? Shape{size.height, size.width} : target->shape;
    spec.dtypes[kTargetArray] = target->dtype;
  }
  return spec;
}

std::string ImageFiles::describe(int64_t index) const {
  return source_->ImageSource::short_name(index) + ": sample " + std::to_string(index);
}

Batch ImageFiles::read_part(int64_t index, const ChoosePart& choose) const {
  ImageSize whole;
  const auto look_and_choose = [&](const ImageSize& size) { return choose(whole = size); };
  const at::Tensor image =
      source_->image(index, look_and_choose, {options_.scaled_decoding, options_.max_image_pixels});
  TensorTree::Children sample{{kInputArray, image.unsqueeze(0)}};
  const auto form = source_->target_form();
  if (!form) return sample;
  const at::Tensor target = source_->target_tensor(index);
  if (form->is_mask() && ImageSize{target.size(0), target.size(1)} != whole)
    throw UserError("the image is " + size_text(whole) + ", and its mask " +
                    size_text({target.size(0), target.size(1)}));
  sample.emplace_back(kTargetArray, target.unsqueeze(0));
  return sample;
}

bool ImageFiles::try_part(int64_t index, const ChoosePart& choose, Batch& sample) const {
  const auto fail = [&](const UserError& error) {
    throw UserError({source_->name(index)},
                    describe(index).substr(source_->name(index).size() + 2) + ": " + error.message());
  };
  try {
    sample = read_part(index, choose);
    return true;
  } catch (const StreamError&) {
    throw;
  } catch (const TransformError& error) {
    fail(error);
  } catch (const UserError& error) {
    if (options_.on_bad_sample == OnBadSample::kError) fail(error);
    replaced_.note(describe(index) + ": " + error.message(), index);
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

Batch ImageFiles::no_samples() const {
  const SampleSpec samples = spec();
  TensorTree::Children batch;
  for (const auto& [name, shape] : samples.shapes) {
    Shape sizes = {0};
    for (const int64_t size : shape) sizes.push_back(std::max<int64_t>(size, 0));
    batch.emplace_back(name, at::empty(sizes, samples.dtypes.at(name)));
  }
  return batch;
}

Batch ImageFiles::get(std::span<const int64_t> indices, const Epoch&) const {
  if (indices.empty()) return no_samples();
  std::map<std::string, std::vector<at::Tensor>> rows;
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
    for (const auto& [name, array] : sample.children()) rows[name].push_back(array.tensor()[0]);
  }
  TensorTree::Children batch;
  for (const auto& [name, arrays] : rows) batch.emplace_back(name, at::stack(arrays));
  return batch;
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
