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

// Those that may follow one another in sequential_lr.
std::vector<Entry> decays() {
  return {
      {"step_lr",
       "Times gamma after every step_size steps; as torch's StepLR.",
       {steps("step_size", "", "steps between two changes"), gamma("0.1")}},
      {"multistep_lr",
       "Times gamma at each milestone; as torch's MultiStepLR.",
       {milestones("the steps at which the rate is multiplied by gamma; they ascend").at_least(0),
        gamma("0.1")}},
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
        Key{"T_mult", kInteger, "1", "how much longer each next one is"}
            .also_named({"t_mult"})
            .at_least(1)
            .at_most(1000),
        eta_min()}},
      {"polynomial_lr",
       "A power of the part of the way that is left, down to 0; as torch's PolynomialLR.",
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
      "Up to max_lr and down to far below the first rate; as torch's OneCycleLR. It needs total_steps, or "
      "epochs and steps_per_epoch.",
      {Key{"max_lr", kNumber, "", "the highest learning rate; the optimizer's lr has no part in it"}
           .more_than(0),
       count("total_steps", "steps of the cycle"),
       count("epochs", "with steps_per_epoch in place of total_steps"),
       count("steps_per_epoch", "with epochs in place of total_steps"),
       factor("pct_start", "0.3", "the part of the cycle that rises"),
       Key{"anneal_strategy", kText, "cos", "the shape of each phase"}.one_of({"cos", "linear"}),
       {"cycle_momentum", kBoolean, "false", "only false: momentum stays as it is"},
       divisor("div_factor", "25", "max_lr / the first rate"),
       divisor("final_div_factor", "10000", "the first rate / the last"),
       {"three_phase", kBoolean, "false",
        "down to the first rate as fast as up, and from there to the last"}}};
}

Entry plateau() {
  const auto evaluations = [](const char* name, const char* fallback, const char* doc) {
    return Key{name, kInteger, fallback, doc}.at_least(0);
  };
  return {"reduce_lr_on_plateau",
          "Times factor when a metric has stopped improving; as torch's ReduceLROnPlateau, stepped at each "
          "evaluation that eval_interval asks for.",
          {{"monitor", kText, "metrics/eval/CrossEntropy", "the metric, as metrics.jsonl names it"},
           Key{"mode", kText, "min", "whether lower or higher is better"}.one_of({"min", "max"}),
           factor("factor", "0.1", "the learning rate's factor").less_than(1),
           evaluations("patience", "10", "evaluations without an improvement that are put up with"),
           Key{"threshold", kNumber, "0.0001", "how much better counts as an improvement"}.at_least(0),
           Key{"threshold_mode", kText, "rel", "whether threshold is a part of the best value so far"}.one_of(
               {"rel", "abs"}),
           evaluations("cooldown", "0", "evaluations after a change that do not count"),
           Key{"min_lr", kNumber, "0", "the lowest learning rate"}.at_least(0),
           Key{"eps", kNumber, "1e-8", "a smaller change of the rate is not made"}.at_least(0)}};
}

Entry sequential() {
  const auto inner = std::make_shared<const Catalog>(Catalog{.section = "scheduler.schedulers",
                                                             .noun = "scheduler",
                                                             .doc = "One of a sequence.",
                                                             .entries = decays()});
  return {"sequential_lr",
          "Schedulers one after another, each from its own beginning; as torch's SequentialLR.",
          {Key{"schedulers", kTables, "", "[[scheduler.schedulers]], in their order"}.each(inner),
           milestones("the steps at which the next one begins; one fewer than schedulers").at_least(1)}};
}

}  // namespace

std::vector<Entry> pytorch_schedulers() {
  std::vector<Entry> entries = decays();
  entries.push_back(one_cycle());
  entries.push_back(sequential());
  for (Entry& entry : entries)
    entry.keys.push_back(Key{"step", kText, "epoch", "it is stepped after every epoch or every batch"}.one_of(
        {"epoch", "batch"}));
  entries.push_back(plateau());
  return entries;
}

}  // namespace tutti
