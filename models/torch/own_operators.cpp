#include "models/torch/own_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "models/layers/drops.h"
#include "models/layers/norm.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// A mode of libtorch's dispatcher that nothing else in a process uses: its name says that it is for tests of
// what tutti does here.
constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;

using Excluded = c10::impl::ExcludeDispatchKeyGuard;

thread_local OwnOperators* current = nullptr;

}  // namespace

// The operators; friends of the pass that is under way.
class OwnOperators::Pass {
 public:
  static at::Tensor dropout(const at::Tensor& x, double p, bool train) {
    const Excluded off(kMode);
    return drops(train) ? dropped(context(), x, p) : x;
  }
  static at::Tensor& dropout_(at::Tensor& x, double p, bool train) {
    const Excluded off(kMode);
    return drops(train) && p > 0 ? x.copy_(dropped(context(), x, p)) : x;
  }
  static at::Tensor feature_dropout(const at::Tensor& x, double p, bool train) {
    const Excluded off(kMode);
    return drops(train) ? dropped(context(), x, p, true) : x;
  }
  static at::Tensor& feature_dropout_(at::Tensor& x, double p, bool train) {
    const Excluded off(kMode);
    return drops(train) && p > 0 ? x.copy_(dropped(context(), x, p, true)) : x;
  }
  static at::Tensor& bernoulli_(at::Tensor& x, double p, std::optional<at::Generator> generator) {
    const Excluded off(kMode);
    if (generator) return x.bernoulli_(p, generator);
    fill_bernoulli(context(), x, p);
    return x;
  }
  static at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const std::optional<at::Tensor>& mask, double dropout, bool causal,
                              std::optional<double> scale, bool grouped_query) {
    const Excluded off(kMode);
    if (dropout == 0 || !context().training)
      return at::scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale, grouped_query);
    return attention_that_drops(
        context(), {query, key, value, mask.value_or(at::Tensor()), dropout, causal, scale, grouped_query});
  }
  static at::Tensor batch_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                               const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                               const std::optional<at::Tensor>& variance, bool training, double momentum,
                               double eps, bool cudnn) {
    const Excluded off(kMode);
    const int norm = mean && mean->defined() ? current->norms_.find(*mean) : -1;
    if (norm < 0) {
      const bool is_read = mean && reads(*mean);
      if (is_read && drops(training))
        throw UserError(
            "the batch norm is called by a module above its own; a trace does so with modules that "
            "are called twice, torch.jit.script does not");
      return at::batch_norm(x, weight, bias, mean, variance, training && !is_read, momentum, eps, cudnn);
    }
    if (!drops(training)) {
      const auto dtype = weight && weight->defined() ? weight->scalar_type() : mean->scalar_type();
      return at::batch_norm(x, weight, bias, mean->to(dtype), variance->to(dtype), false, momentum, eps,
                            cudnn);
    }
    const bool has_variance = x.numel() > x.size(1);
    const at::Tensor scale = weight.value_or(at::Tensor()), shift = bias.value_or(at::Tensor());
    if (!context().statistics || !has_variance) return batch_normalised(x, scale, shift, eps);
    const int64_t values = 2 * x.size(1);
    const at::Tensor numbers = at::full({values + 2}, momentum, x.options().dtype(at::kFloat));
    numbers.narrow(0, values + 1, 1).fill_(1);
    at::Tensor output = batch_normalised(x, scale, shift, eps, numbers.narrow(0, 0, values));
    const at::NoGradGuard no_gradients;
    at::Tensor& statistics = current->statistics_[static_cast<std::size_t>(norm)];
    statistics = current->norms_.joined(statistics, numbers);
    return output;
  }
  // Layers with a dropout of their own, between times and not samples.
  static void as_it_is(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Excluded off(kMode);
    set_mode(op, *stack);
    op.callBoxed(stack);
  }
  // Operators that call bernoulli_ in training.
  static void by_others(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (current->direct_) return as_it_is(op, stack);
    set_mode(op, *stack);
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kMode), stack);
  }

 private:
  static const ForwardContext& context() { return current->layer_.context(); }
  static void set_mode(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].name() == "train" || arguments[i].name() == "training") {
        c10::IValue& mode = torch::jit::peek(stack, i, arguments.size());
        mode = drops(mode.toBool());
      }
  }
  // True for a buffer of a layer whose tensors this one reads.
  static bool reads(const at::Tensor& tensor) {
    for (const Layer* const layer : current->layer_.reads())
      for (const auto& buffer : layer->own_buffers())
        if (buffer->tensor.is_same(tensor)) return true;
    return false;
  }
  static bool drops(bool training) { return context().training && (training || current->always_); }
};

// The mode has one kernel an operator.
void OwnOperators::prepare() {
  static const auto library = [] {
    auto fallthrough = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kMode, __FILE__, __LINE__);
    fallthrough->fallback(torch::CppFunction::makeFallthrough());
    auto own = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kMode, __FILE__, __LINE__);
    own->impl("dropout", &Pass::dropout);
    own->impl("dropout_", &Pass::dropout_);
    own->impl("feature_dropout", &Pass::feature_dropout);
    own->impl("feature_dropout_", &Pass::feature_dropout_);
    own->impl("bernoulli_.float", &Pass::bernoulli_);
    own->impl("scaled_dot_product_attention", &Pass::attention);
    own->impl("batch_norm", &Pass::batch_norm);
    for (const char* name : {"lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input",
                             "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data", "rrelu", "rrelu_"})
      own->impl(name, torch::CppFunction::makeFromBoxedFunction<&Pass::as_it_is>());
    for (const char* name : {"alpha_dropout", "alpha_dropout_", "feature_alpha_dropout",
                             "feature_alpha_dropout_", "bernoulli.p"})
      own->impl(name, torch::CppFunction::makeFromBoxedFunction<&Pass::by_others>());
    return std::pair{std::move(fallthrough), std::move(own)};
  }();
}

OwnOperators::OwnOperators(Layer& layer, const Norms& norms, bool always, bool direct)
    : layer_(layer),
      norms_(norms),
      always_(always),
      direct_(direct),
      statistics_(norms.count()),
      outer_(current) {
  prepare();
  current = this;
  c10::impl::tls_set_dispatch_key_included(kMode, true);
}

OwnOperators::~OwnOperators() {
  current = outer_;
  c10::impl::tls_set_dispatch_key_included(kMode, outer_ != nullptr);
}

void OwnOperators::finish() {
  const bool is_any_called = std::ranges::any_of(statistics_, &at::Tensor::defined);
  if (is_any_called) layer_.context().statistics->push_back({&layer_, norms_.row(statistics_)});
}

}  // namespace tutti
