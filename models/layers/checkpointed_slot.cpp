#include "models/layers/checkpointed_slot.h"

#include <ATen/core/grad_mode.h>

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

// A call of a slot that can be made again. Autograd's graph of the first call owns it, by its Placeholders.
class RepeatableCall : public std::enable_shared_from_this<RepeatableCall> {
 public:
  RepeatableCall(const Slot& slot, std::string name, const TensorTree& input, const Slot::Next& next)
      : layer_(slot.layer()),
        name_(std::move(name)),
        input_(input),
        next_(next),
        context_(slot.layer().context()),
        device_(Device::of(input)),
        autocast_(AutocastScope::current(device_)),
        generators_(device_.where) {
    for (const auto& [leaf, tensor] : input.leaves()) versions_.push_back(tensor._version());
  }

  TensorTree first();

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
    saved_[index].wanted = false;
  }
  void keep(const at::Tensor& tensor);

 private:
  struct Saved {
    at::ScalarType dtype;
    int64_t numel = 0;
    at::Tensor tensor;   // between the second call and its use
    bool wanted = true;  // by a node that backward has not left
  };

  void call_again();
  void require_same_input() const;
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("sharding.activation_checkpointing: '" + name_ + "' " + what);
  }

  Layer& layer_;
  std::string name_;
  TensorTree input_;
  std::vector<int64_t> versions_;  // of the input's tensors
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

TensorTree RepeatableCall::first() {
  const SavedTensorsScope scope([call = shared_from_this()] { return std::make_unique<Placeholder>(call); });
  return next_(input_);
}

void RepeatableCall::keep(const at::Tensor& tensor) {
  Saved& saved = saved_[again_++];
  if (tensor.scalar_type() != saved.dtype || tensor.numel() != saved.numel)
    fail("computes something else when it is called again in backward; leave it out");
  if (saved.wanted) saved.tensor = tensor.detach();
  if (again_ == saved_.size()) throw AllAreThere{};
}

void RepeatableCall::require_same_input() const {
  const auto leaves = input_.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].second._version() != versions_[i])
      fail("cannot be called again in backward: its input was changed in place; leave it out");
}

void RepeatableCall::call_again() {
  require_same_input();
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
    next_(input_);
  } catch (const AllAreThere&) {
    return;
  }
  fail("saves fewer tensors when it is called again in backward; leave it out");
}

}  // namespace

Slot::Hook checkpoint_activations(Slot& slot, const std::string& name) {
  return slot.around([&slot, name](const TensorTree& input, const Slot::Next& next) {
    if (!at::GradMode::is_enabled() || SavedTensorsScope::active()) return next(input);
    return std::make_shared<RepeatableCall>(slot, name, input, next)->first();
  });
}

}  // namespace tutti
