#include "models/layers/checkpointed_slot.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <memory>
#include <optional>
#include <utility>

#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/process_state.h"
#include "tensors/saved_tensors.h"

namespace tutti {
namespace {

// Ends the second call: all tensors are there.
struct AllAreThere {};

// A layer that changes its input in place makes the input part of its graph, which owns the call: the call
// must not own the graph.
at::Tensor without_graph(const at::Tensor& tensor) {
  return tensor.detach().set_requires_grad(tensor.requires_grad());
}

// A call of a slot that can be made again. Autograd's graph of the first call owns it, by its Placeholders.
class RepeatableCall : public std::enable_shared_from_this<RepeatableCall> {
 public:
  RepeatableCall(const Slot& slot, std::string name, const TensorTree& input, const Slot::Next& next)
      : layer_(slot.layer()),
        name_(std::move(name)),
        input_(input.map(without_graph)),
        next_(next),
        context_(slot.layer().context()),
        device_(Device::of(input)),
        autocast_(AutocastScope::current(device_)),
        generators_(device_.where) {
    for (const auto& [leaf, tensor] : input.leaves()) versions_.push_back(tensor._version());
  }

  TensorTree first(const TensorTree& input);
  // Call after `first`: the device forgets the input.
  void offload_input();

  // The tensor that the first call was the `index`-th to save.
  at::Tensor take(std::size_t index) {
    if (!saved_[index].tensor.defined()) call_again();
    return std::exchange(saved_[index].tensor, at::Tensor());
  }
  std::size_t note(const at::Tensor& tensor) {
    saved_.push_back({tensor.scalar_type(), tensor.numel(), {}, true});
    return saved_.size() - 1;
  }
  void forget(std::size_t index) {
    saved_[index].tensor = at::Tensor();
    saved_[index].needed = false;
  }
  void keep(const at::Tensor& tensor);

 private:
  struct Offloaded {
    bool moved = false;
    bool requires_grad = false;
  };
  struct Saved {
    at::ScalarType dtype;
    int64_t numel = 0;
    at::Tensor tensor;   // between the second call and its use
    bool needed = true;  // by a node that backward has not left
  };

  void call_again();
  TensorTree input_on_device() const;
  void require_same_input() const;
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("sharding.activation_checkpointing: '" + name_ + "' " + what);
  }

  Layer& layer_;
  std::string name_;
  TensorTree input_;
  std::vector<int64_t> versions_;     // of the input's tensors
  std::vector<Offloaded> offloaded_;  // of each of them; empty: none is
  Slot::Next next_;
  ForwardContext context_;
  Device device_;
  std::optional<at::ScalarType> autocast_;
  DefaultGenerators generators_;
  std::vector<Saved> saved_;
  std::size_t again_ = 0;  // tensors that the second call has saved
};

// In the first call's graph, in place of a tensor.
class Placeholder final : public SavedTensorsScope::Hooks {
 public:
  explicit Placeholder(std::shared_ptr<RepeatableCall> call) : call_(std::move(call)) {}
  ~Placeholder() override {
    if (index_) call_->forget(*index_);
  }
  void call_pack_hook(const at::Tensor& tensor) override { index_ = call_->note(tensor); }
  at::Tensor call_unpack_hook() override { return call_->take(*index_); }

 private:
  std::shared_ptr<RepeatableCall> call_;
  std::optional<std::size_t> index_;
};

// In the second call's graph, which never runs backward.
class Keeper final : public SavedTensorsScope::Hooks {
 public:
  explicit Keeper(RepeatableCall& call) : call_(call) {}
  void call_pack_hook(const at::Tensor& tensor) override { call_.keep(tensor); }
  at::Tensor call_unpack_hook() override { return {}; }

 private:
  RepeatableCall& call_;
};

TensorTree RepeatableCall::first(const TensorTree& input) {
  const SavedTensorsScope scope([call = shared_from_this()] { return std::make_unique<Placeholder>(call); });
  return next_(input);
}

void RepeatableCall::offload_input() {
  require_same_input();
  const at::NoGradGuard no_grad;
  input_ = input_.map([this](const at::Tensor& tensor) {
    const bool moves = !tensor.is_cpu() && tensor.is_non_overlapping_and_dense();
    offloaded_.push_back({moves, tensor.requires_grad()});
    if (!moves) return tensor;
    const at::Tensor host = staging_memory({tensor.numel()}, tensor.scalar_type(), device_);
    return host.as_strided(tensor.sizes(), tensor.strides()).copy_(tensor, /*non_blocking=*/true);
  });
}

TensorTree RepeatableCall::input_on_device() const {
  if (offloaded_.empty()) return input_;
  const at::NoGradGuard no_grad;
  auto leaf = offloaded_.begin();
  return input_.map([&](const at::Tensor& host) {
    const Offloaded& offloaded = *leaf++;
    if (!offloaded.moved) return host;
    const auto options = device_.options(host.scalar_type());
    return at::empty_strided(host.sizes(), host.strides(), options)
        .copy_(host, /*non_blocking=*/true)
        .set_requires_grad(offloaded.requires_grad);
  });
}

void RepeatableCall::keep(const at::Tensor& tensor) {
  Saved& saved = saved_[again_++];
  if (tensor.scalar_type() != saved.dtype || tensor.numel() != saved.numel)
    fail("computes something else when it is called again in backward; leave it out");
  if (saved.needed) saved.tensor = tensor.detach();
  if (again_ == saved_.size()) throw AllAreThere{};
}

void RepeatableCall::require_same_input() const {
  const auto leaves = input_.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].second._version() != versions_[i])
      fail("cannot be called again in backward: its input was changed in place; leave it out");
}

void RepeatableCall::call_again() {
  if (offloaded_.empty()) require_same_input();
  std::vector<RunningStatistics> discarded;
  ForwardContext context = context_;
  if (context.statistics) context.statistics = &discarded;
  const ContextScope in_context(layer_, context);
  const at::AutoGradMode with_grad(true);
  const AutocastScope autocast(autocast_, device_);
  const DefaultGeneratorScope generators(generators_, device_.where);
  const SavedTensorsScope scope([this] { return std::make_unique<Keeper>(*this); });
  again_ = 0;
  try {
    next_(input_on_device());
  } catch (const AllAreThere&) {
    return;
  }
  fail("saves fewer tensors when it is called again in backward; leave it out");
}

}  // namespace

Slot::Hook checkpoint_activations(Slot& slot, const std::string& name, bool offload) {
  return slot.around([&slot, name, offload](const TensorTree& input, const Slot::Next& next) {
    if (!at::GradMode::is_enabled() || SavedTensorsScope::active()) return next(input);
    const auto call = std::make_shared<RepeatableCall>(slot, name, input, next);
    TensorTree output = call->first(input);
    if (offload && !Device::of(input).is_cpu()) call->offload_input();
    return output;
  });
}

}  // namespace tutti
