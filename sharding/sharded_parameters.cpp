#include "sharding/sharded_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <limits>
#include <map>
#include <utility>

#include "runtime/error.h"
#include "sharding/shard_plan.h"

namespace tutti {
namespace {

void require_rows(const Trainee& trainee) {
  for (const auto& one : trainee.parameters)
    if (!can_cut(one.parameter->tensor))
      throw UserError("the parameter '" + one.name +
                      "' cannot be cut by rows: its first dimension is not the outermost in memory");
}

// Flat memory, of which the tensor is no owner.
at::Tensor borrowed(const at::Tensor& memory) {
  return at::from_blob(memory.data_ptr(), memory.sizes(), memory.options());
}

// What the whole parameters are to be; no memory.
std::vector<at::Tensor> stand_ins(const Trainee& trainee, const std::vector<bool>& cast) {
  std::vector<at::Tensor> all;
  for (std::size_t p = 0; p < trainee.parameters.size(); ++p) {
    const at::Tensor& tensor = trainee.parameters[p].parameter->tensor;
    const bool low = !cast.empty() && cast[p];
    const at::ScalarType dtype = low ? trainee.precision.autocast.value() : tensor.scalar_type();
    const auto options = at::TensorOptions(at::kMeta).dtype(dtype);
    all.push_back(at::empty_strided(tensor.sizes(), tensor.strides(), options));
  }
  return all;
}

// A bucket of each dtype of a unit's parameters.
std::vector<Bucket> buckets_of(const Unit& unit, const std::vector<at::Tensor>& all) {
  std::map<at::ScalarType, std::vector<std::size_t>> by_dtype;
  for (const std::size_t p : unit.parameters) by_dtype[all[p].scalar_type()].push_back(p);
  std::vector<Bucket> buckets;
  for (const auto& [dtype, members] : by_dtype) {
    std::vector<at::Tensor> own;
    for (const std::size_t p : members) own.push_back(all[p]);
    buckets.push_back(std::move(plan_buckets(own, std::numeric_limits<int64_t>::max()).buckets.front()));
    for (BucketSlot& slot : buckets.back().slots) slot.parameter = members[slot.parameter];
  }
  return buckets;
}

}  // namespace

ShardedParameters::ShardedParameters(Trainee& trainee, const std::vector<Unit>& units,
                                     const std::vector<bool>& cast)
    : trainee_(trainee) {
  require_rows(trainee);
  const auto all = stand_ins(trainee, cast);
  for (std::size_t u = 0; u < units.size(); ++u) {
    first_.push_back(blocks_.size());
    for (Bucket& bucket : buckets_of(units[u], all)) {
      const CutPtr cut = cut_by_rows(bucket, all, trainee.share.pieces);
      blocks_.push_back({u, std::move(bucket), cut, {}, {}});
    }
  }
  first_.push_back(blocks_.size());
  held_.resize(blocks_.size());
  replaced_.resize(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) give_storage(b, all);
}

ShardedParameters::~ShardedParameters() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) free(b);
}

// The block's parameters become tensors of one storage without memory.
void ShardedParameters::give_storage(std::size_t block, const std::vector<at::Tensor>& like) {
  const at::NoGradGuard no_grad;
  const Bucket& layout = blocks_[block].layout;
  storage_.emplace_back(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(layout.bytes),
                        at::DataPtr(nullptr, at::kCPU));
  for (const BucketSlot& slot : layout.slots) {
    const at::Tensor& wanted = like[slot.parameter];
    at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    at::Tensor fresh = at::empty({0}, at::TensorOptions(at::kCPU).dtype(layout.dtype));
    fresh.set_(storage_.back(), slot.offset, wanted.sizes(), wanted.strides());
    fresh.set_requires_grad(tensor.requires_grad());
    tensor = std::move(fresh);
  }
}

std::vector<int64_t> ShardedParameters::part_bytes() const {
  std::vector<int64_t> bytes;
  for (const Block& block : blocks_)
    bytes.push_back(block.cut->largest_part() * static_cast<int64_t>(c10::elementSize(block.layout.dtype)));
  return bytes;
}

void ShardedParameters::bind(const std::vector<at::Tensor>& memory) {
  const at::NoGradGuard no_grad;
  const auto all = tensors_of(trainee_);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    if (block.layout.slots.empty()) continue;
    const int64_t size = block.cut->part_size(trainee_.share.index);
    block.part = memory[b].view(block.layout.dtype).narrow(0, 0, size);
    const at::ScalarType exact = trainee_.views[block.layout.slots.front().parameter].tensor.scalar_type();
    const bool same = exact == block.layout.dtype;
    block.exact = same ? block.part : at::empty({size}, at::TensorOptions(at::kCPU).dtype(exact));
    for (std::size_t s = 0; s < block.layout.slots.size(); ++s) {
      ParamView& view = trainee_.views[block.layout.slots[s].parameter];
      const at::Tensor rows = rows_in_part(block.exact, block.layout, s, all, trainee_.share);
      rows.copy_(view.tensor);
      view.tensor.set_data(rows);
    }
  }
}

void ShardedParameters::cast_parts() {
  const at::NoGradGuard no_grad;
  for (const Block& block : blocks_)
    if (!block.part.is_same(block.exact)) at::Tensor(block.part).copy_(block.exact);
}

at::Tensor ShardedParameters::hold(std::size_t block) {
  const Bucket& layout = blocks_[block].layout;
  const auto item = static_cast<int64_t>(c10::elementSize(layout.dtype));
  at::Tensor& memory = held_[block];
  TUTTI_ASSERT(!memory.defined(), "a unit is held twice");
  memory = at::empty({layout.bytes / item}, at::TensorOptions(at::kCPU).dtype(layout.dtype));
  storage_[block].set_data_ptr_noswap(at::DataPtr(memory.mutable_data_ptr(), at::kCPU));
  return borrowed(memory);
}

at::Tensor ShardedParameters::hold_exact(std::size_t block) {
  const Block& held = blocks_[block];
  if (held.part.is_same(held.exact)) return hold(block);
  TUTTI_ASSERT(!is_held(block), "a unit is held twice");
  held_[block] = at::empty({held.layout.bytes / static_cast<int64_t>(c10::elementSize(held.layout.dtype))},
                           held.exact.options());
  for (const BucketSlot& slot : held.layout.slots) {
    at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    replaced_[block].push_back(tensor);
    tensor = held_[block].as_strided(tensor.sizes(), tensor.strides(), slot.offset);
  }
  return borrowed(held_[block]);
}

void ShardedParameters::free(std::size_t block) {
  if (!is_held(block)) return;
  for (std::size_t s = 0; s < replaced_[block].size(); ++s)
    trainee_.parameters[blocks_[block].layout.slots[s].parameter].parameter->tensor = replaced_[block][s];
  replaced_[block].clear();
  storage_[block].set_data_ptr_noswap(at::DataPtr(nullptr, at::kCPU));
  held_[block] = at::Tensor();
}

}  // namespace tutti
