#include "training/optimizers/options.h"

namespace tutti {
namespace {

constexpr const char* kCoupled = "weight_decay * weight is added to the gradient";
constexpr const char* kShrinking = "weights shrink by weight_decay * lr";
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
std::vector<Bound<Options>> sgd_options(Bound<Options> lr, const char* decay_doc) {
  return {
      std::move(lr),
      option<Options>("momentum", &Options::momentum, "factor of the running sum of gradients").at_least(0),
      option<Options>("dampening", &Options::dampening, "reduces the gradient's part in the momentum"),
      decay<Options>(decay_doc),
      option<Options>("nesterov", &Options::nesterov,
                      "Nesterov momentum; needs momentum > 0 and dampening 0")};
}

template <class Options>
Bound<Options> two_betas(const char* doc = "decay of the running mean of gradients and of their squares") {
  return option<Options>("betas", &Options::betas, doc).at_least(0).less_than(1);
}

template <class Options>
Bound<Options> epsilon() {
  return option<Options>("eps", &Options::eps, "added to the denominator").at_least(0);
}

template <class Options>
std::vector<Bound<Options>> adam_options(const char* decay_doc) {
  return {
      learning_rate<Options>(), two_betas<Options>(), epsilon<Options>(), decay<Options>(decay_doc),
      option<Options>("amsgrad", &Options::amsgrad, "divide by the largest running mean of squares so far")};
}

template <class Options>
std::vector<Bound<Options>> lion_options(const char* decay_doc) {
  return {learning_rate<Options>(), two_betas<Options>("of the mean whose sign is stepped by, of exp_avg"),
          decay<Options>(decay_doc)};
}

}  // namespace

Kind<SgdOptions> SgdOptions::kind() {
  return {"sgd", "Stochastic gradient descent with optional momentum; as torch.optim.SGD.",
          with_keys(sgd_options(learning_rate<SgdOptions>(), kCoupled), maximizes<SgdOptions>())};
}

Kind<DecoupledSgdwOptions> DecoupledSgdwOptions::kind() {
  return {"decoupled_sgdw", "SGD with decoupled weight decay; as Composer's DecoupledSGDW.",
          sgd_options(learning_rate<DecoupledSgdwOptions>().required(), kDecoupled)};
}

Kind<AdamOptions> AdamOptions::kind() {
  return {"adam", "Adam (Kingma and Ba, 2014); as torch.optim.Adam.",
          with_keys(adam_options<AdamOptions>(kCoupled), maximizes<AdamOptions>())};
}

Kind<AdamWOptions> AdamWOptions::kind() {
  return {"adamw", "Adam with decoupled weight decay (Loshchilov and Hutter, 2017); as torch.optim.AdamW.",
          with_keys(adam_options<AdamWOptions>(kShrinking), maximizes<AdamWOptions>())};
}

Kind<DecoupledAdamWOptions> DecoupledAdamWOptions::kind() {
  return {"decoupled_adamw", "Adam with decoupled weight decay; as Composer's DecoupledAdamW.",
          adam_options<DecoupledAdamWOptions>(kDecoupled)};
}

Kind<NAdamOptions> NAdamOptions::kind() {
  using O = NAdamOptions;
  return {"nadam", "Adam with Nesterov momentum (Dozat, 2016); as torch.optim.NAdam.",
          with_keys(
              std::vector<Bound<O>>{
                  learning_rate<O>(), two_betas<O>(), epsilon<O>(), decay<O>(kCoupled),
                  option("momentum_decay", &O::momentum_decay, "of the momentum's warm-up").at_least(0),
                  option("decoupled_weight_decay", &O::decoupled_weight_decay,
                         "weights shrink by weight_decay * lr instead")},
              maximizes<O>())};
}

Kind<AdagradOptions> AdagradOptions::kind() {
  using O = AdagradOptions;
  return {
      "adagrad",
      "Steps divided by the root of the sum of all squares (Duchi et al., 2011); as torch.optim.Adagrad.",
      with_keys(
          std::vector<Bound<O>>{
              learning_rate<O>(),
              option("lr_decay", &O::lr_decay, "lr is divided by 1 + lr_decay * earlier steps").at_least(0),
              decay<O>(kCoupled),
              option("initial_accumulator_value", &O::initial_accumulator_value, "of the sum of squares")
                  .at_least(0),
              epsilon<O>()},
          maximizes<O>())};
}

Kind<RmsPropOptions> RmsPropOptions::kind() {
  using O = RmsPropOptions;
  return {"rmsprop",
          "Steps divided by the root of the running mean of squares (Hinton, 2012); as torch.optim.RMSprop.",
          with_keys(
              std::vector<Bound<O>>{
                  learning_rate<O>(),
                  option("alpha", &O::alpha, "decay of the running mean of squares").at_least(0),
                  epsilon<O>(), decay<O>(kCoupled),
                  option("momentum", &O::momentum, "factor of the running sum of steps").at_least(0),
                  option("centered", &O::centered, "divide by the root of the variance")},
              maximizes<O>())};
}

Kind<AdafactorOptions> AdafactorOptions::kind() {
  using O = AdafactorOptions;
  return {"adafactor",
          "Adam without momentum, with the squares of rows and columns (Shazeer and Stern, 2018); as "
          "torch.optim.Adafactor.",
          with_keys(
              std::vector<Bound<O>>{
                  learning_rate<O>(),
                  option("beta2_decay", &O::beta2_decay, "exponent of the step: share of the newest squares")
                      .at_most(0),
                  option("eps1", &O::eps1, "least mean of squares; the parameter's precision when absent")
                      .at_least(0),
                  option("eps2", &O::eps2, "least root mean square of a parameter, which scales its steps")
                      .at_least(0),
                  option("d", &O::d, "largest root mean square of a step").at_least(1), decay<O>(kShrinking)},
              maximizes<O>())};
}

Kind<LionOptions> LionOptions::kind() {
  return {"lion", "Steps by the sign of the momentum (Chen et al., 2023); as lion_pytorch's Lion.",
          lion_options<LionOptions>(kShrinking)};
}

Kind<DecoupledLionWOptions> DecoupledLionWOptions::kind() {
  return {"decoupled_lionw", "Lion with decoupled weight decay; as llm-foundry's DecoupledLionW.",
          lion_options<DecoupledLionWOptions>(kDecoupled)};
}

Kind<LambOptions> LambOptions::kind() {
  using O = LambOptions;
  return {"lamb",
          "Adam with a rate for each parameter by its norm, for large batches (You et al., 2019); as timm's "
          "Lamb, without its clipping of gradients (max_grad_norm).",
          {learning_rate<O>(),
           option("bias_correction", &O::bias_correction, "correct the running means of the first steps"),
           two_betas<O>(), epsilon<O>(), decay<O>("weight_decay * weight is added to the step"),
           option("grad_averaging", &O::grad_averaging, "gradients count 1 - beta1 in their running mean"),
           option("trust_clip", &O::trust_clip, "the rate of a parameter is at most lr"),
           option("always_adapt", &O::always_adapt, "a rate by norm without weight decay, too")}};
}

Kind<MuonOptions> MuonOptions::kind() {
  using O = MuonOptions;
  return {
      "muon",
      "Orthogonalised momentum for matrices (Jordan et al., 2024), as torch.optim.Muon; AdamW for other "
      "parameters.",
      {learning_rate<O>(), decay<O>(kShrinking),
       option("momentum", &O::momentum, "decay of the running mean of gradients").at_least(0).less_than(1),
       option("nesterov", &O::nesterov, "Nesterov momentum"),
       option("ns_coefficients", &O::ns_coefficients, "of a Newton-Schulz iteration"),
       option("eps", &O::eps, "least norm that a momentum is divided by").at_least(0),
       option("ns_steps", &O::ns_steps, "number of iterations").at_least(0).less_than(100),
       option("adjust_lr_fn", &O::adjust_lr_fn,
              "the rate of a matrix: lr * sqrt(max(1, rows / columns)), or lr * 0.2 * sqrt(the larger)",
              {{"original", AdjustLr::kOriginal}, {"match_rms_adamw", AdjustLr::kMatchRmsAdamw}}),
       option("adamw_match", &O::adamw_match,
              "patterns of matrices for AdamW; embeddings and heads by their usual names when absent"),
       option("adamw_lr", &O::adamw_lr, "learning rate of AdamW's parameters").at_least(0),
       option("adamw_betas", &O::adamw_betas, "AdamW's betas").at_least(0).less_than(1),
       option("adamw_eps", &O::adamw_eps, "AdamW's eps").at_least(0),
       option("adamw_weight_decay", &O::adamw_weight_decay, "AdamW's weight_decay").at_least(0)}};
}

Catalog optimizer_catalog() {
  std::vector<Entry> entries = OptimizerKinds::entries();
  entries.push_back(plugin_entry("optimizer"));
  Catalog catalog = section_catalog<OptimizerKeys>();
  catalog.noun = "optimizer";
  catalog.entries = std::move(entries);
  return catalog;
}

Kind<OptimizerKeys> OptimizerKeys::kind() {
  return {"optimizer",
          "The optimizer.",
          {option("no_decay", &OptimizerKeys::no_decay,
                  "parameters without weight decay: name patterns like *.bias"),
           option("layer_decay", &OptimizerKeys::layer_decay,
                  "factor of the learning rate from a block of the model to the one before it; 1 at the head")
               .more_than(0)
               .at_most(1),
           option("groups", &OptimizerKeys::groups,
                  "[[optimizer.groups]], parameters with a learning rate or weight decay of their own")
               .each(std::make_shared<const Catalog>(section_catalog<ParameterGroup>()))
               .as(KeyType::kTables)}};
}

Kind<ParameterGroup> ParameterGroup::kind() {
  return {"optimizer.groups",
          "Parameters with hyperparameters of their own; the first group that matches counts.",
          {option("match", &ParameterGroup::match, "name patterns like *.bias").required(),
           option("lr", &ParameterGroup::lr,
                  "learning rate, which follows [scheduler]; the optimizer's when absent")
               .at_least(0),
           option("weight_decay", &ParameterGroup::weight_decay, "the optimizer's when absent").at_least(0)}};
}

}  // namespace tutti
