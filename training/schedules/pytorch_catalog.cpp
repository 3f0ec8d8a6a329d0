#include "training/schedules/catalog.h"

namespace tutti {
namespace {

using enum KeyType;
using Keys = std::vector<Key>;

constexpr const char* kOneThird = "0.3333333333333333";
constexpr double kMostSteps = 1e15;

Key steps(const char* name, const char* fallback, const char* doc) {
  return Key{name, kInteger, fallback, doc}.at_least(1).at_most(kMostSteps);
}

Key gamma(const char* fallback) {
  return Key{"gamma", kNumber, fallback, "the learning rate's factor"}.at_least(0);
}

Key eta_min() { return Key{"eta_min", kNumber, "0", "the lowest learning rate"}.at_least(0); }

Key total_iters() { return steps("total_iters", "5", "steps until it ends"); }

Key factor(const char* name, const char* fallback, const char* doc) {
  return Key{name, kNumber, fallback, doc}.at_least(0).at_most(1);
}

Key milestones(const char* doc) { return Key{"milestones", kIntegers, "", doc}.at_most(kMostSteps); }

// Schedulers that sequential_lr may contain.
std::vector<Entry> decays() {
  return {
      {"step_lr",
       "Times gamma after every step_size steps; as torch's StepLR.",
       {steps("step_size", "", "steps between two changes"), gamma("0.1")}},
      {"multistep_lr",
       "Times gamma at each milestone; as torch's MultiStepLR.",
       {milestones("ascending steps at which the rate is multiplied by gamma").at_least(0), gamma("0.1")}},
      {"constant_lr",
       "Times factor, for the first total_iters steps; as torch's ConstantLR.",
       {factor("factor", kOneThird, "the learning rate's factor"), total_iters()}},
      {"linear_lr",
       "In a straight line from start_factor to end_factor; as torch's LinearLR.",
       {factor("start_factor", kOneThird, "the factor at the start").more_than(0),
        factor("end_factor", "1", "the factor after total_iters steps"), total_iters()}},
      {"exponential_lr", "Times gamma after every step; as torch's ExponentialLR.", {gamma("")}},
      {"cosine_annealing_lr",
       "Down a half cosine to eta_min, and up again beyond T_max; as torch's CosineAnnealingLR.",
       {steps("T_max", "", "steps of the half cosine").also_named({"t_max"}), eta_min()}},
      {"cosine_annealing_warm_restarts_lr",
       "Half cosines, each T_mult times as long as the one before; as torch's CosineAnnealingWarmRestarts.",
       {steps("T_0", "", "steps of the first").also_named({"t_0"}),
        Key{"T_mult", kInteger, "1", "growth of the length"}.also_named({"t_mult"}).at_least(1).at_most(1000),
        eta_min()}},
      {"polynomial_lr",
       "A power of the remaining fraction, down to 0; as torch's PolynomialLR.",
       {total_iters(), Key{"power", kNumber, "1", "the exponent"}.at_least(0)}},
  };
}

Entry one_cycle() {
  const auto count = [](const char* name, const char* doc) {
    return Key{name, kInteger, "none", doc}.at_least(1).at_most(1e9);
  };
  const auto divisor = [](const char* name, const char* fallback, const char* doc) {
    return Key{name, kNumber, fallback, doc}.more_than(0);
  };
  return {
      "one_cycle_lr",
      "Up to max_lr, then down to far below the initial rate; as torch's OneCycleLR. Needs total_steps, or "
      "epochs and steps_per_epoch.",
      {Key{"max_lr", kNumber, "", "the highest learning rate, independent of the optimizer's lr"}.more_than(
           0),
       count("total_steps", "steps of the cycle"),
       count("epochs", "with steps_per_epoch in place of total_steps"),
       count("steps_per_epoch", "with epochs in place of total_steps"),
       factor("pct_start", "0.3", "rising fraction of the cycle"),
       Key{"anneal_strategy", kText, "cos", "the shape of each phase"}.one_of({"cos", "linear"}),
       {"cycle_momentum", kBoolean, "false", "only false is supported"},
       divisor("div_factor", "25", "max_lr / initial rate"),
       divisor("final_div_factor", "10000", "initial rate / last rate"),
       {"three_phase", kBoolean, "false", "down to the initial rate as fast as up, then to the last rate"}}};
}

Entry plateau() {
  const auto evaluations = [](const char* name, const char* fallback, const char* doc) {
    return Key{name, kInteger, fallback, doc}.at_least(0);
  };
  return {
      "reduce_lr_on_plateau",
      "Times factor when a metric has stopped improving; as torch's ReduceLROnPlateau, stepped at each "
      "evaluation that eval_interval asks for.",
      {{"monitor", kText, "metrics/eval/CrossEntropy",
        "the metric, as metrics.jsonl names it; metrics/ and the label may be left out where that is clear"},
       Key{"mode", kText, "min", "whether lower or higher is better"}.one_of({"min", "max"}),
       factor("factor", "0.1", "the learning rate's factor").less_than(1),
       evaluations("patience", "10", "accepted evaluations without improvement"),
       Key{"threshold", kNumber, "0.0001", "smallest improvement that counts"}.at_least(0),
       Key{"threshold_mode", kText, "rel", "rel: threshold is relative to the best value; abs: absolute"}
           .one_of({"rel", "abs"}),
       evaluations("cooldown", "0", "evaluations to ignore after a change"),
       Key{"min_lr", kNumber, "0", "the lowest learning rate"}.at_least(0),
       Key{"eps", kNumber, "1e-8", "smallest change of the rate"}.at_least(0)}};
}

Entry sequential() {
  const auto inner = std::make_shared<const Catalog>(Catalog{.section = "scheduler.schedulers",
                                                             .noun = "scheduler",
                                                             .doc = "One of a sequence.",
                                                             .entries = decays()});
  return {"sequential_lr",
          "Schedulers one after another, each from its own beginning; as torch's SequentialLR.",
          {Key{"schedulers", kTables, "", "[[scheduler.schedulers]], in their order"}.each(inner),
           milestones("steps at which the next scheduler begins; one fewer than schedulers").at_least(1)}};
}

}  // namespace

std::vector<Entry> pytorch_schedulers() {
  std::vector<Entry> entries = decays();
  entries.push_back(one_cycle());
  entries.push_back(sequential());
  for (Entry& entry : entries)
    entry.keys.push_back(
        Key{"step", kText, "epoch", "step after every epoch or every batch"}.one_of({"epoch", "batch"}));
  entries.push_back(plateau());
  return entries;
}

}  // namespace tutti
