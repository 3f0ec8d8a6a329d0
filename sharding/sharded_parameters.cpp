#include "sharding/sharded_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <map>
#include <utility>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "sharding/shard_plan.h"

namespace tutti {
namespace {

void require_rows(const Trainee& trainee) {
  for (const auto& named : trainee.parameters)
    if (!can_cut(named.parameter->tensor))
      throw UserError("the parameter '" + named.name +
                      "' cannot be cut by rows: its first dimension is not the outermost in memory");
}

// Flat memory, of which the tensor is no owner.
at::Tensor borrowed(const at::Tensor& memory) {
  return at::from_blob(memory.data_ptr(), memory.sizes(), memory.options());
}

// Storage in which libtorch finds no numbers, but an error.
c10::Storage without_numbers(const std::string& name, int64_t bytes, const Device& device) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, at::DataPtr(nullptr, device.where));
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(
      "the parameter '" + name +
      "' is sharded, and this rank does not have all of it now; state.views has the rank's rows, "
      "state.visit_parameters gathers whole parameters, and state.with_model does so for running the model");
  return storage;
}

// Tensors with the layout of the whole parameters, without memory.
std::vector<at::Tensor> stand_ins(const Trainee& trainee, const std::vector<bool>& cast) {
  std::vector<at::Tensor> all;
  for (std::size_t p = 0; p < trainee.parameters.size(); ++p) {
    const at::Tensor& tensor = trainee.parameters[p].parameter->tensor;
    const bool low = !cast.empty() && cast[p];
    all.push_back(stand_in(tensor, low ? trainee.precision.autocast.value() : tensor.scalar_type()));
  }
  return all;
}

// A bucket of each dtype of a unit's parameters.
std::vector<Bucket> buckets_of(const Unit& unit, const std::vector<at::Tensor>& all) {
  std::map<at::ScalarType, std::vector<std::size_t>> by_dtype;
  for (const std::size_t p : unit.parameters) by_dtype[all[p].scalar_type()].push_back(p);
  std::vector<Bucket> buckets;
  for (const auto& [dtype, members] : by_dtype)
    buckets.push_back(std::move(plan_buckets(all, members, kAnyBytes).buckets.front()));
  return buckets;
}

}  // namespace

ShardedParameters::ShardedParameters(Trainee& trainee, const std::vector<Unit>& units, bool stays,
                                     const std::vector<bool>& cast)
    : trainee_(trainee), stays_(stays) {
  require_rows(trainee);
  const auto all = stand_ins(trainee, cast);
  for (std::size_t u = 0; u < units.size(); ++u) {
    first_.push_back(blocks_.size());
    for (Bucket& bucket : buckets_of(units[u], all)) {
      const CutPtr cut = cut_by_rows(bucket, all, trainee.views, trainee.topology.share.pieces);
      blocks_.push_back({u, std::move(bucket), cut, {}, {}});
    }
  }
  first_.push_back(blocks_.size());
  held_.resize(blocks_.size());
  replaced_.resize(blocks_.size());
  hidden_.resize(trainee.parameters.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    give_storage(b, all);
    hide(b);
  }
}

ShardedParameters::~ShardedParameters() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) free(b);
}

// The block's parameters become tensors of one storage without memory.
void ShardedParameters::give_storage(std::size_t block, const std::vector<at::Tensor>& like) {
  const at::NoGradGuard no_grad;
  const Bucket& layout = blocks_[block].layout;
  storage_.emplace_back(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(layout.bytes),
                        at::DataPtr(nullptr, trainee_.device.where));
  for (const BucketSlot& slot : layout.slots) {
    const at::Tensor& model_tensor = like[slot.parameter];
    at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    at::Tensor fresh = at::empty({0}, trainee_.device.options(layout.dtype));
    fresh.set_(storage_.back(), slot.offset, model_tensor.sizes(), model_tensor.strides());
    fresh.set_requires_grad(tensor.requires_grad());
    tensor = std::move(fresh);
    hidden_[slot.parameter] =
        without_numbers(trainee_.parameters[slot.parameter].name, layout.bytes, trainee_.device);
  }
}

void ShardedParameters::show(std::size_t block) {
  if (!replaced_[block].empty()) return;
  for (const BucketSlot& slot : blocks_[block].layout.slots) {
    const at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage_[block]);
  }
}

void ShardedParameters::hide(std::size_t block) {
  for (const BucketSlot& slot : blocks_[block].layout.slots) {
    const at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(hidden_[slot.parameter]);
  }
}

at::ScalarType ShardedParameters::exact_dtype(const Block& block) const {
  return trainee_.views[block.layout.slots.front().parameter].tensor.scalar_type();
}

std::vector<int64_t> ShardedParameters::shared_bytes() const {
  std::vector<int64_t> bytes;
  for (const Block& block : blocks_) {
    const int64_t part_bytes = block.cut->largest_part() * block.layout.item();
    const bool on_host = offloads() && exact_dtype(block) == block.layout.dtype;
    bytes.push_back(stays_ ? block.layout.bytes : on_host ? 0 : part_bytes);
  }
  return bytes;
}

void ShardedParameters::bind(const std::vector<at::Tensor>& memory) {
  const at::NoGradGuard no_grad;
  const auto all = tensors_of(trainee_);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const int64_t size = block.cut->part_size(trainee_.topology.share.index);
    const at::ScalarType exact = exact_dtype(block);
    const bool same = exact == block.layout.dtype;
    if (offloads()) block.exact = staging_memory({size}, exact, trainee_.device);
    const bool on_host = offloads() && same;
    block.part = on_host ? block.exact : memory[b].view(block.layout.dtype);
    if (stays_)
      storage_[b].set_data_ptr_noswap(at::DataPtr(block.part.mutable_data_ptr(), trainee_.device.where));
    else if (!on_host)
      block.part = block.part.narrow(0, 0, size);
    if (!offloads()) block.exact = same ? block.part : at::empty({size}, trainee_.device.options(exact));
    const RowsOfRank place(block.layout, all, trainee_.views, trainee_.topology.share,
                           stays_ ? RowsOfRank::In::kWhole : RowsOfRank::In::kPart);
    const auto rows = place.rows(block.exact);
    for (std::size_t s = 0; s < rows.size(); ++s) {
      ParamView& view = trainee_.views[block.layout.slots[s].parameter];
      view.tensor.set_data(rows[s].copy_(view.tensor));
    }
  }
}

void ShardedParameters::cast_parts() {
  const at::NoGradGuard no_grad;
  for (const Block& block : blocks_) {
    if (block.part.is_same(block.exact)) continue;
    TUTTI_PROBE("sharding: a share is cast before it is gathered");
    at::Tensor(block.part).copy_(block.exact.to(trainee_.device.where, /*non_blocking=*/true));
  }
}

// Memory for the whole of a block in this dtype.
at::Tensor ShardedParameters::empty(std::size_t block, at::ScalarType dtype) const {
  TUTTI_ASSERT(!is_held(block), "a unit is held twice");
  const Bucket& layout = blocks_[block].layout;
  return at::empty({layout.bytes / layout.item()}, trainee_.device.options(dtype));
}

at::Tensor ShardedParameters::hold(std::size_t block) {
  if (stays_) {
    held_[block] = blocks_[block].part;
    return {};
  }
  const at::Tensor memory = held_[block] = empty(block, blocks_[block].layout.dtype);
  storage_[block].set_data_ptr_noswap(at::DataPtr(memory.mutable_data_ptr(), trainee_.device.where));
  return borrowed(memory);
}

at::Tensor ShardedParameters::hold_exact(std::size_t block) {
  const Block& held = blocks_[block];
  if (held.part.is_same(held.exact)) return hold(block);
  const at::Tensor memory = held_[block] = empty(block, held.exact.scalar_type());
  for (const BucketSlot& slot : held.layout.slots) {
    at::Tensor& tensor = trainee_.parameters[slot.parameter].parameter->tensor;
    replaced_[block].push_back(tensor);
    tensor = memory.as_strided(tensor.sizes(), tensor.strides(), slot.offset);
  }
  return borrowed(memory);
}

void ShardedParameters::free(std::size_t block) {
  if (!is_held(block)) {
    TUTTI_PROBE("sharding: a unit is freed twice");
    return;
  }
  for (std::size_t s = 0; s < replaced_[block].size(); ++s)
    trainee_.parameters[blocks_[block].layout.slots[s].parameter].parameter->tensor = replaced_[block][s];
  replaced_[block].clear();
  hide(block);
  if (!stays_) storage_[block].set_data_ptr_noswap(at::DataPtr(nullptr, trainee_.device.where));
  held_[block] = at::Tensor();
}

double ShardedParameters::gathered_bytes() const {
  double bytes = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    const double share = static_cast<double>(block.cut->part_size(trainee_.topology.share.index)) *
                         static_cast<double>(block.part.element_size());
    if (stays_) bytes += static_cast<double>(block.part.nbytes()) - share;
    if (!stays_ && is_held(b)) bytes += static_cast<double>(held_[b].nbytes());
  }
  return bytes;
}

}  // namespace tutti
