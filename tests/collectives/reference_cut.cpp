#include "tests/collectives/reference_cut.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "runtime/random.h"

namespace tutti {

Parts random_parts(int ranks, int64_t count, uint64_t salt) {
  const RandomKey lengths = RandomKey(salt, "lengths"), owners = RandomKey(salt, "owners"),
                  places = RandomKey(salt, "places");
  Parts parts(ranks);
  const int64_t most = count / 12 + 3;
  for (int64_t begin = 0, draw = 0; begin < count; ++draw) {
    const int64_t end = std::min<int64_t>(count, begin + 1 + lengths.below(most, draw));
    const auto owner = static_cast<int>(owners.below(ranks + 1, draw));
    const bool is_left_out = owner == ranks || (salt % 2 == 1 && owner == static_cast<int>(salt / 2 % ranks));
    if (!is_left_out) {
      auto& ranges = parts[owner];
      ranges.insert(ranges.begin() + places.below(ranges.size() + 1, draw), {begin, end});
    }
    begin = end;
  }
  return parts;
}

at::Tensor part_of(const at::Tensor& whole, const std::vector<ElementRange>& ranges) {
  std::vector<at::Tensor> pieces = {at::empty({0}, whole.options())};
  for (const ElementRange& range : ranges) pieces.push_back(whole.slice(0, range.begin, range.end));
  return at::cat(pieces);
}

at::Tensor outside_of(const Parts& parts, const at::Tensor& other, const at::Tensor& whole) {
  at::Tensor out = other.clone();
  for (const auto& ranges : parts)
    for (const ElementRange& range : ranges)
      out.slice(0, range.begin, range.end).copy_(whole.slice(0, range.begin, range.end));
  return out;
}

}  // namespace tutti
