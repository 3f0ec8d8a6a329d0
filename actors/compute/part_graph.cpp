#include "actors/compute/part_graph.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <utility>

#include "runtime/error.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

void add_layers(const Layer& layer, std::vector<const void*>& all) {
  for (const auto& slot : layer.slots()) {
    if (slot->empty()) continue;
    all.push_back(&slot->layer());
    add_layers(slot->layer(), all);
  }
}

}  // namespace

PartGraph::PartGraph(State& state, ForwardContext& context, std::vector<RunningStatistics>& statistics,
                     AutogradSweep& sweep, Log& log)
    : state_(state), context_(context), found_(statistics), sweep_(sweep), log_(log) {}

bool PartGraph::run(double factor, bool alone, const Work& work) {
  Likeness now = likeness();
  if (!graph_ || now != recorded_) {
    if (now != seen_) alike_ = 0;
    seen_ = std::move(now);
    if (alike_++ < kWarmUps || !record(work)) return false;
  }
  alike_ = 0;
  fill(factor);
  graph_->launch();
  give(alone);
  return true;
}

PartGraph::Likeness PartGraph::likeness() const {
  Likeness now;
  for (const auto& [name, leaf] : state_.batch.leaves())
    now.batch.push_back({name, leaf.sizes().vec(), leaf.strides().vec(), leaf.scalar_type()});
  for (const auto& named : state_.parameters) {
    now.addresses.push_back(named.parameter->tensor.const_data_ptr());
    now.trained.push_back(named.parameter->tensor.requires_grad());
  }
  for (const auto& named : state_.buffers) now.addresses.push_back(named.buffer->tensor.const_data_ptr());
  add_layers(*state_.model, now.addresses);
  return now;
}

void PartGraph::wait_for(const std::string& who) {
  if (waited_++ == kWarmUps) log_.warning("train.cuda_graphs has no effect while " + who);
}

// The device's cache is emptied first: a graph cannot use what it holds.
bool PartGraph::record(const Work& work) {
  drop();
  Meter::empty_device_cache(state_.device.memory_slot);
  const Batch given = state_.batch;
  const DefaultGenerators generators(state_.device.where);
  std::vector<at::Tensor> before;
  for (auto& named : state_.parameters)
    before.push_back(std::exchange(named.parameter->tensor.mutable_grad(), at::Tensor()));
  std::exception_ptr error;
  try {
    record_work(work);
    if (generators.host_has_drawn()) throw UserError("numbers of the host's generator are drawn");
  } catch (...) {
    error = std::current_exception();
  }
  generators.restore();  // the work that follows draws what was drawn here
  context_.key_on_device = {};
  context_.begin_pass(context_.first_sample);
  state_.batch = given;
  for (std::size_t p = 0; p < before.size(); ++p)
    state_.parameters[p].parameter->tensor.mutable_grad() = before[p];
  if (!error) {
    log_.info("forward and backward of a microbatch are a graph of the device from step " +
              std::to_string(state_.timestamp.batch + 1) + " on");
    return true;
  }
  forget_attempt();
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    if (is_lack_of_memory(why)) {
      log_.warning(
          "memory has run out while a graph was recorded, which keeps memory of its own; without "
          "train.cuda_graphs more is left");
      throw;
    }
    refuse(one_line(why));
  }
  return false;
}

void PartGraph::record_work(const Work& work) {
  graph_ = make_graph(state_.device.where.index());
  if (!graph_) throw UserError("this kind of device has no graphs");
  state_.batch = batch_ = state_.batch.map([](const at::Tensor& leaf) { return leaf.clone(); });
  numbers_ = at::zeros({1 + 2 * kMostMasks}, state_.device.options(at::kLong));
  context_.key_on_device = [this](const std::string& name) { return key_of_mask(name); };
  record_graph(*graph_, [&] {
    work([this](const at::Tensor& loss) {
      return at::empty_like(loss).copy_(numbers_.narrow(0, 0, 1).view(at::kDouble).squeeze(0));
    });
  });
  recorded_ = std::exchange(seen_, {});
  outputs_ = std::exchange(state_.outputs, {}).map([](const at::Tensor& leaf) { return leaf.detach(); });
  loss_ = std::exchange(state_.loss, at::Tensor()).detach();
  statistics_ = std::exchange(found_, {});
  for (auto& named : state_.parameters)
    gradients_.push_back(std::exchange(named.parameter->tensor.mutable_grad(), at::Tensor()));
}

at::Tensor PartGraph::key_of_mask(const std::string& name) {
  const auto place = std::ssize(masks_);
  if (place == kMostMasks)
    throw UserError("a microbatch has more than " + std::to_string(kMostMasks) + " masks");
  masks_.push_back(name);
  return numbers_.narrow(0, 1 + 2 * place, 2);
}

// Also what autograd still holds.
void PartGraph::forget_attempt() {
  state_.outputs = {};
  state_.loss = at::Tensor();
  found_.clear();
  sweep_.run();
  drop();
}

void PartGraph::refuse(const std::string& why) {
  refused_ = true;
  log_.warning("train.cuda_graphs has no effect: " + why);
}

void PartGraph::drop() {
  outputs_ = {};
  loss_ = at::Tensor();
  statistics_.clear();
  gradients_.clear();
  masks_.clear();
  batch_ = {};
  numbers_ = at::Tensor();
  recorded_ = {};
  graph_.reset();
}

void PartGraph::fill(double factor) {
  const auto from = state_.batch.leaves(), to = batch_.leaves();
  for (std::size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].second).copy_(from[i].second);
  const int64_t count = 1 + 2 * std::ssize(masks_);
  const at::Tensor staged = staging_memory({count}, at::kLong, state_.device);
  auto* next = staged.mutable_data_ptr<int64_t>();
  *next++ = std::bit_cast<int64_t>(factor);
  for (const std::string& name : masks_) {
    *next++ = static_cast<int64_t>(context_.draws(name)->key_of_batch().state());
    *next++ = context_.first_sample;
  }
  numbers_.narrow(0, 0, count).copy_(staged, /*non_blocking=*/true);
}

// As backward does it with a leaf that has a gradient.
void PartGraph::give(bool alone) {
  const at::NoGradGuard no_grad;
  state_.outputs = outputs_;
  state_.loss = loss_;
  found_ = statistics_;
  for (std::size_t p = 0; p < gradients_.size(); ++p) {
    if (!gradients_[p].defined()) continue;
    at::Tensor& gradient = state_.parameters[p].parameter->tensor.mutable_grad();
    if (gradient.defined())
      gradient.add_(gradients_[p]);
    else
      gradient = alone ? gradients_[p] : gradients_[p].clone();
  }
}

}  // namespace tutti
