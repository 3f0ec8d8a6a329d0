#include "tensors/late_numbers.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "tensors/device.h"

namespace tutti {
namespace {

// Flat, in float64, and a copy: the tensor may be a graph's, which overwrites it.
at::Tensor as_doubles(const at::Tensor& numbers) {
  return numbers.detach().reshape({-1}).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
}

std::span<const double> values_of(const at::Tensor& doubles) {
  return {doubles.const_data_ptr<double>(), static_cast<std::size_t>(doubles.numel())};
}

}  // namespace

void LateNumbers::add(const at::Tensor& numbers, Use use) {
  if (!numbers.is_cpu()) {
    waiting_.push_back({as_doubles(numbers), std::move(use)});
  } else if (numbers.dim() == 0) {
    const auto number = numbers.item<double>();
    use({&number, 1});
  } else {
    use(values_of(as_doubles(numbers)));
  }
}

void LateNumbers::launch() {
  if (waiting_.empty()) return;
  TUTTI_ASSERT(!copied_, "the numbers before are not read");
  std::vector<at::Tensor> parts;
  for (const Waiting& waiting : waiting_) parts.push_back(waiting.numbers);
  const at::Tensor all = at::cat(parts);
  const Device device{all.device()};
  host_ = staging_memory(all.sizes(), at::kDouble, device);
  host_.copy_(all, /*non_blocking=*/true);
  copied_ = StreamOrder::record(device);
}

void LateNumbers::read() {
  if (waiting_.empty()) return;
  if (!copied_) launch();
  const LateNumbers late = std::exchange(*this, {});
  late.copied_.synchronize();
  std::span<const double> values = values_of(late.host_);
  for (const Waiting& waiting : late.waiting_) {
    const auto count = static_cast<std::size_t>(waiting.numbers.numel());
    waiting.use(values.first(count));
    values = values.subspan(count);
  }
}

HostCopies::HostCopies(const Batch& on_device, const Batch& on_host) {
  const auto there = on_device.leaves(), here = on_host.leaves();
  if (there.size() != here.size()) return;
  for (std::size_t i = 0; i < there.size(); ++i)
    if (!there[i].second.is_cpu()) copies_.emplace_back(there[i].second, here[i].second);
}

Batch HostCopies::of(const Batch& batch) const {
  if (copies_.empty()) return batch;
  bool all = true;
  const Batch copies = batch.map([&](const at::Tensor& leaf) {
    const auto copy =
        std::ranges::find_if(copies_, [&](const auto& one) { return one.first.is_alias_of(leaf); });
    all = all && copy != copies_.end();
    if (!all) return leaf;
    return copy->second.as_strided(leaf.sizes(), leaf.strides(), leaf.storage_offset());
  });
  return all ? copies : batch;
}

}  // namespace tutti
