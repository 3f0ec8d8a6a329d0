#include "data/readers/benchmarks/image_dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

void check_byte_labels(const ImageDataset::Part& part, int64_t classes, int64_t ignore_index) {
  for (int64_t i = 0; i < part.samples; ++i) {
    const auto label = std::to_integer<int64_t>(*part.labels.at(i));
    if (label < classes || label == ignore_index) continue;
    throw UserError({part.labels.file->path()},
                    "byte " + std::to_string(part.labels.first + i * part.labels.stride) + ": label " +
                        std::to_string(label) + " is not in [0, " + std::to_string(classes) + ")");
  }
}

}  // namespace

ImageDataset::ImageDataset(const Layout& layout, std::vector<Part> parts)
    : layout_(layout), parts_(std::move(parts)), starts_{0} {
  for (const Part& part : parts_) {
    check_byte_labels(part, layout.classes, layout.ignore_index);
    starts_.push_back(starts_.back() + part.samples);
  }
}

SampleSpec ImageDataset::spec() const {
  return {{{"input", {layout_.height, layout_.width, layout_.channels}}, {"target", {}}},
          layout_.classes,
          {{"input", at::kByte}, {"target", at::kLong}}};
}

Batch ImageDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  const auto& [height, width, channels, planar, classes, ignored] = layout_;
  const auto count = static_cast<int64_t>(indices.size());
  const at::Tensor images = at::empty(
      planar ? Shape{count, channels, height, width} : Shape{count, height, width, channels}, at::kByte);
  const at::Tensor targets = at::empty({count}, at::kLong);
  auto* image = images.mutable_data_ptr<uint8_t>();
  auto* target = targets.mutable_data_ptr<int64_t>();
  for (const int64_t index : indices) {
    TUTTI_ASSERT(index >= 0 && index < size(), "sample " + std::to_string(index));
    const auto part = std::ranges::upper_bound(starts_, index) - starts_.begin() - 1;
    const Part& from = parts_[static_cast<std::size_t>(part)];
    const int64_t record = index - starts_[static_cast<std::size_t>(part)];
    std::memcpy(image, from.images.at(record), static_cast<std::size_t>(layout_.bytes()));
    image += layout_.bytes();
    *target++ = std::to_integer<int64_t>(*from.labels.at(record));
  }
  const at::Tensor input = planar ? images.permute({0, 2, 3, 1}).contiguous() : images;
  return TensorTree::Children{{"input", input}, {"target", targets}};
}

LabelRange ImageDataset::labels() const {
  LabelCounter counter;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (int64_t i = 0; i < parts_[part].samples; ++i) {
      const auto label = std::to_integer<int64_t>(*parts_[part].labels.at(i));
      if (label != layout_.ignore_index) counter.add(label, starts_[part] + i);
    }
  return counter.range();
}

uint64_t ImageDataset::digest() const { return digest_of_samples(*this); }

}  // namespace tutti
