#include "models/layers/key_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runtime/error.h"

namespace tutti {
namespace {

at::TensorOptions integers_on(at::Device device) { return at::TensorOptions(at::kLong).device(device); }

at::Tensor column_of(const std::vector<int64_t>& numbers, at::Device device) {
  return at::tensor(numbers, at::kLong).to(device).unsqueeze(1);
}

}  // namespace

void KeyCache::begin_pass(std::vector<int64_t> lengths) {
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  longest_ = *longest;
  rows_differ_ = *shortest != longest_;
  TUTTI_ASSERT(longest_ <= capacity_, "more tokens than there is room for");
  lengths_ = std::move(lengths);
  next_ = 0;
  masks_.clear();
  ++passes_;
}

at::Tensor KeyCache::positions(const at::Tensor& tokens) const {
  if (is_first_pass()) return at::arange(tokens.size(1), integers_on(tokens.device()));
  if (!rows_differ_) return at::full({1}, longest_ - 1, integers_on(tokens.device()));
  return column_of(lengths_, tokens.device()) - 1;
}

at::Tensor KeyCache::last_of_rows(const at::Tensor& states) const {
  if (states.size(1) == 1) return states;
  if (!rows_differ_) return states.narrow(1, longest_ - 1, 1);
  const at::Tensor last = (column_of(lengths_, states.device()) - 1).unsqueeze(2);
  return states.gather(1, last.expand({-1, 1, states.size(2)}));
}

// What a first pass writes behind the end of a short row is overwritten before a token sees it.
void KeyCache::write(const at::Tensor& to, const at::Tensor& numbers) const {
  if (is_first_pass()) {
    to.narrow(2, 0, numbers.size(2)).copy_(numbers);
  } else if (!rows_differ_) {
    to.narrow(2, longest_ - 1, 1).copy_(numbers);
  } else {
    const at::Tensor places = (column_of(lengths_, to.device()) - 1).unsqueeze(2).unsqueeze(3);
    to.scatter_(2, places.expand(numbers.sizes()), numbers.to(to.scalar_type()));
  }
}

at::Tensor KeyCache::mask(int64_t first, int64_t window, at::Device device) {
  if (!rows_differ_) return {};
  at::Tensor& mask = masks_[window];
  if (mask.defined()) return mask;
  const at::Tensor places = at::arange(first, longest_, integers_on(device)).unsqueeze(0);
  const at::Tensor ends = column_of(lengths_, device);
  mask = places < ends;
  if (window > 0) mask = mask.logical_and_(places >= ends - window);
  return mask = mask.unsqueeze(1).unsqueeze(1);
}

KeyCache::Seen KeyCache::keep(const at::Tensor& keys, const at::Tensor& values, int64_t window) {
  if (next_ == kept_.size()) {
    TUTTI_ASSERT(is_first_pass(), "an attention that was not called in the first pass");
    // Not empty: places that a mask leaves out count as 0 times their number, which must not be NaN.
    const auto room = [&](const at::Tensor& like) {
      return at::zeros({like.size(0), like.size(1), capacity_, like.size(3)}, like.options());
    };
    kept_.push_back({room(keys), room(values)});
  }
  const Kept& kept = kept_[next_++];
  write(kept.keys, keys);
  write(kept.values, values);
  if (is_first_pass()) return {keys, values, {}, 0};
  const int64_t shortest = *std::ranges::min_element(lengths_);
  const int64_t first = window > 0 ? std::max<int64_t>(0, shortest - window) : 0;
  const auto seen = [&](const at::Tensor& all) { return all.narrow(2, first, longest_ - first); };
  return {seen(kept.keys), seen(kept.values), mask(first, window, keys.device()), first};
}

}  // namespace tutti
