#include "sharding/sharded_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <limits>

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

}  // namespace

ShardedParameters::ShardedParameters(Trainee& trainee, const std::vector<Unit>& units) : trainee_(trainee) {
  require_rows(trainee);
  const auto all = tensors_of(trainee);
  for (std::size_t u = 0; u < units.size(); ++u) {
    first_.push_back(blocks_.size());
    std::vector<at::Tensor> own;
    for (const std::size_t p : units[u].parameters) own.push_back(all[p]);
    for (Bucket& bucket : plan_buckets(own, std::numeric_limits<int64_t>::max()).buckets) {
      for (BucketSlot& slot : bucket.slots) slot.parameter = units[u].parameters[slot.parameter];
      const CutPtr cut = cut_by_rows(bucket, all, trainee.share.pieces);
      blocks_.push_back({u, std::move(bucket), cut, {}});
    }
  }
  first_.push_back(blocks_.size());
  held_.resize(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) give_storage(b);
}

ShardedParameters::~ShardedParameters() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) free(b);
}

// The block's parameters become tensors of one storage without memory.
void ShardedParameters::give_storage(std::size_t block) {
  const at::NoGradGuard no_grad;
  const Bucket& layout = blocks_[block].layout;
  storage_.emplace_back(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(layout.bytes),
                        at::DataPtr(nullptr, at::kCPU));
  for (const BucketSlot& slot : layout.slots) {
    at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    at::Tensor fresh = at::empty({0}, at::TensorOptions(at::kCPU).dtype(layout.dtype));
    fresh.set_(storage_.back(), slot.offset, tensor.sizes(), tensor.strides());
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
    block.part = memory[b].view(block.layout.dtype).narrow(0, 0, block.cut->part_size(trainee_.share.index));
    for (std::size_t s = 0; s < block.layout.slots.size(); ++s) {
      ParamView& view = trainee_.views[block.layout.slots[s].parameter];
      const at::Tensor rows = rows_in_part(block.part, block.layout, s, all, trainee_.share);
      rows.copy_(view.tensor);
      view.tensor.set_data(rows);
    }
  }
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

void ShardedParameters::free(std::size_t block) {
  if (!is_held(block)) return;
  storage_[block].set_data_ptr_noswap(at::DataPtr(nullptr, at::kCPU));
  held_[block] = at::Tensor();
}

}  // namespace tutti
