#include "training/optimizers/options.h"

namespace tutti {
namespace {

constexpr const char* kCoupled = "weight_decay * weight is added to the gradient";
constexpr const char* kDecoupled = "weights shrink by weight_decay * lr / initial lr";

template <class Options>
Bound<Options> learning_rate() {
  return option<Options>("lr", &Options::lr, "learning rate").at_least(0);
}

template <class Options>
Bound<Options> decay(const char* doc) {
  return option<Options>("weight_decay", &Options::weight_decay, doc).at_least(0);
}

// torch.optim's optimizers have it, Composer's decoupled ones do not.
template <class Options>
std::vector<Bound<Options>> maximizes() {
  return {option<Options>("maximize", &Options::maximize, "maximize the loss")};
}

template <class Options>
std::vector<Bound<Options>> of_sgd(Bound<Options> lr, const char* decay_doc) {
  return {
      std::move(lr),
      option<Options>("momentum", &Options::momentum, "factor of the running sum of gradients").at_least(0),
      option<Options>("dampening", &Options::dampening, "reduces the gradient's part in the momentum"),
      decay<Options>(decay_doc),
      option<Options>("nesterov", &Options::nesterov,
                      "Nesterov momentum; needs momentum > 0 and dampening 0")};
}

template <class Options>
std::vector<Bound<Options>> of_adam(const char* decay_doc) {
  return {
      learning_rate<Options>(),
      option<Options>("betas", &Options::betas, "decay of the running mean of gradients and of their squares")
          .at_least(0)
          .less_than(1),
      option<Options>("eps", &Options::eps, "added to the denominator").at_least(0),
      decay<Options>(decay_doc),
      option<Options>("amsgrad", &Options::amsgrad, "divide by the largest running mean of squares so far")};
}

}  // namespace

Kind<SgdOptions> SgdOptions::kind() {
  return {"sgd", "Stochastic gradient descent with optional momentum; as torch.optim.SGD.",
          with_keys(of_sgd(learning_rate<SgdOptions>(), kCoupled), maximizes<SgdOptions>())};
}

Kind<DecoupledSgdwOptions> DecoupledSgdwOptions::kind() {
  return {"decoupled_sgdw", "SGD with decoupled weight decay; as Composer's DecoupledSGDW.",
          of_sgd(learning_rate<DecoupledSgdwOptions>().required(), kDecoupled)};
}

Kind<AdamOptions> AdamOptions::kind() {
  return {"adam", "Adam (Kingma and Ba, 2014); as torch.optim.Adam.",
          with_keys(of_adam<AdamOptions>(kCoupled), maximizes<AdamOptions>())};
}

Kind<AdamWOptions> AdamWOptions::kind() {
  return {"adamw", "Adam with decoupled weight decay (Loshchilov and Hutter, 2017); as torch.optim.AdamW.",
          with_keys(of_adam<AdamWOptions>("weights shrink by weight_decay * lr"), maximizes<AdamWOptions>())};
}

Kind<DecoupledAdamWOptions> DecoupledAdamWOptions::kind() {
  return {"decoupled_adamw", "Adam with decoupled weight decay; as Composer's DecoupledAdamW.",
          of_adam<DecoupledAdamWOptions>(kDecoupled)};
}

Catalog optimizer_catalog() {
  std::vector<Entry> entries = OptimizerKinds::entries();
  entries.push_back(plugin_entry("optimizer"));
  return {.section = "optimizer",
          .noun = "optimizer",
          .doc = "The optimizer.",
          .keys = {{"no_decay", KeyType::kTexts, "[]",
                    "parameters without weight decay: name patterns like *.bias"}},
          .entries = std::move(entries)};
}

}  // namespace tutti
