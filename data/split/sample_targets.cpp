#include "data/split/sample_targets.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "data/arrays/array_dataset.h"
#include "data/readers/image_files.h"
#include "data/readers/mds_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/split/sample_part.h"
#include "data/transforms/transform.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kReadAtOnce = 256;
constexpr int64_t kMostNumbers = int64_t{16} << 20;

// False for masks, tokens and other large targets.
bool has_small_targets(const Dataset& data) {
  const SampleSpec spec = data.spec();
  const auto shape = spec.shapes.find(kTargetArray);
  if (shape == spec.shapes.end() || shape->second.size() > 1) return false;
  const int64_t numbers = shape->second.empty() ? 1 : shape->second[0];
  return numbers > 0 && numbers <= kMostNumbers / std::max<int64_t>(1, data.size());
}

at::Tensor read_targets(const Dataset& data) {
  std::vector<at::Tensor> parts;
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < data.size(); first += kReadAtOnce) {
    indices.resize(static_cast<std::size_t>(std::min(kReadAtOnce, data.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    parts.push_back(data.get(indices, {}).at(kTargetArray).tensor());
  }
  return at::cat(parts);
}

}  // namespace

SampleTargets sample_targets(const Dataset& data, bool reads) {
  if (const auto* transformed = dynamic_cast<const TransformedDataset*>(&data))
    return sample_targets(*transformed->below(), reads);
  if (const auto* part = dynamic_cast<const SamplePart*>(&data)) {
    SampleTargets whole = sample_targets(*part->whole(), reads);
    if (whole.targets.defined()) whole.targets = whole.targets.index_select(0, at::tensor(part->samples()));
    return whole;
  }
  if (!has_small_targets(data)) return {};
  if (const auto* arrays = dynamic_cast<const ArrayDataset*>(&data)) return {.targets = arrays->targets()};
  const std::string fetched = "its targets are not looked at: samples are fetched one by one";
  if (const auto* images = dynamic_cast<const ImageFiles*>(&data)) {
    const at::Tensor targets = images->targets();
    return targets.defined() ? SampleTargets{.targets = targets} : SampleTargets{.note = fetched};
  }
  const auto* mds = dynamic_cast<const MdsDataset*>(&data);
  if (mds && mds->is_remote()) return {.note = fetched};
  if (!reads) return {};
  if (data.size() > kMostReadForTargets)
    return {.note = "its targets are not looked at: to read " + grouped(data.size()) + " samples takes long"};
  return {.targets = read_targets(data),
          .note = mds ? "all " + grouped(data.size()) + " samples were read for their targets" : ""};
}

std::vector<int64_t> single_classes(const at::Tensor& targets) {
  if (!targets.defined() || targets.dim() != 1 || targets.scalar_type() != at::kLong) return {};
  const at::Tensor whole = targets.contiguous();
  const int64_t* first = whole.const_data_ptr<int64_t>();
  return {first, first + whole.numel()};
}

}  // namespace tutti
