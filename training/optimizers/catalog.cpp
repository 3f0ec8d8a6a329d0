#include "training/optimizers/catalog.h"

#include <utility>

namespace tutti {
namespace {

using enum KeyType;

Key learning_rate(const char* fallback) { return Key{"lr", kNumber, fallback, "learning rate"}.at_least(0); }

Key weight_decay(const char* fallback, const char* doc) {
  return Key{"weight_decay", kNumber, fallback, doc}.at_least(0);
}

// torch.optim's optimizers have `maximize`, Composer's decoupled ones do not.
Entry with_maximize(Entry entry) {
  entry.keys.push_back({"maximize", kBoolean, "false", "maximize the loss"});
  return entry;
}

Entry sgd(const char* name, const char* lr, const char* doc, const char* decay_doc) {
  return {name,
          doc,
          {
              learning_rate(lr),
              Key{"momentum", kNumber, "0", "factor of the running sum of gradients"}.at_least(0),
              {"dampening", kNumber, "0", "reduces the gradient's part in the momentum"},
              weight_decay("0", decay_doc),
              {"nesterov", kBoolean, "false", "Nesterov momentum; needs momentum > 0 and dampening 0"},
          }};
}

Entry adam(const char* name, const char* doc, const char* betas, Key decay) {
  return {name,
          doc,
          {
              learning_rate("0.001"),
              Key{"betas", kNumbers, betas, "decay of the running mean of gradients and of their squares"}
                  .at_least(0)
                  .less_than(1),
              Key{"eps", kNumber, "1e-8", "added to the denominator"}.at_least(0),
              std::move(decay),
              {"amsgrad", kBoolean, "false", "divide by the largest running mean of squares so far"},
          }};
}

constexpr const char* kCoupled = "weight_decay * weight is added to the gradient";
constexpr const char* kDecoupled = "weights shrink by weight_decay * lr / initial lr";

std::vector<Entry> optimizers() {
  return {
      with_maximize(sgd("sgd", "0.001",
                        "Stochastic gradient descent with optional momentum; as torch.optim.SGD.", kCoupled)),
      sgd("decoupled_sgdw", "", "SGD with decoupled weight decay; as Composer's DecoupledSGDW.", kDecoupled),
      with_maximize(adam("adam", "Adam (Kingma and Ba, 2014); as torch.optim.Adam.", "[0.9, 0.999]",
                         weight_decay("0", kCoupled))),
      with_maximize(adam(
          "adamw", "Adam with decoupled weight decay (Loshchilov and Hutter, 2017); as torch.optim.AdamW.",
          "[0.9, 0.999]", weight_decay("0.01", "weights shrink by weight_decay * lr"))),
      adam("decoupled_adamw", "Adam with decoupled weight decay; as Composer's DecoupledAdamW.",
           "[0.9, 0.95]", weight_decay("1e-5", kDecoupled)),
  };
}

}  // namespace

Catalog optimizer_catalog() {
  return {.section = "optimizer",
          .noun = "optimizer",
          .doc = "The optimizer.",
          .keys = {{"no_decay", kTexts, "[]", "parameters without weight decay: name patterns like *.bias"}},
          .entries = optimizers()};
}

}  // namespace tutti
