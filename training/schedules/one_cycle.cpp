#include "training/schedules/one_cycle.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tutti {
namespace {

double cosine_between(double from, double to, double part) {
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1.0);
}

double line_between(double from, double to, double part) { return (to - from) * part + from; }

using Between = double (*)(double from, double to, double part);

struct Phase {
  double end;  // step
  double from, to;
};

int64_t total_steps(const Setting& section, const CurveOptions& run) {
  const bool product = section.has("epochs") || section.has("steps_per_epoch");
  const Setting& total = section.at("total_steps");
  if (!section.has("total_steps") && !(section.has("epochs") && section.has("steps_per_epoch")))
    section.fail("total_steps is missing, or epochs and steps_per_epoch in its place");
  if (section.has("total_steps") && product)
    total.fail("excludes epochs and steps_per_epoch; keep total_steps or the two");
  const int64_t steps =
      product ? section.at("epochs").integer() * section.at("steps_per_epoch").integer() : total.integer();
  if (run.training_steps > static_cast<double>(steps))
    (product ? section.at("epochs") : total)
        .fail("the cycle ends after " + std::to_string(steps) +
              " steps of the scheduler, and the training takes " +
              std::to_string(static_cast<int64_t>(std::ceil(run.training_steps))));
  return steps;
}

std::vector<Phase> phases(const Setting& section, double peak, double steps) {
  const double part = section.at("pct_start").number();
  const double start = peak / section.at("div_factor").number();
  const double end = start / section.at("final_div_factor").number();
  if (part * steps == 1.0) section.at("pct_start").fail("the rise would take only step 0");
  const Phase rise{part * steps - 1.0, start, peak};
  if (!section.at("three_phase").boolean()) return {rise, {steps - 1.0, peak, end}};
  return {rise, {2.0 * part * steps - 2.0, peak, start}, {steps - 1.0, start, end}};
}

}  // namespace

Entry one_cycle_entry() {
  using enum KeyType;
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
       Key{"pct_start", kNumber, "0.3", "rising fraction of the cycle"}.at_least(0).at_most(1),
       Key{"anneal_strategy", kText, "cos", "the shape of each phase"}.one_of({"cos", "linear"}),
       {"cycle_momentum", kBoolean, "false", "only false is supported"},
       divisor("div_factor", "25", "max_lr / initial rate"),
       divisor("final_div_factor", "10000", "initial rate / last rate"),
       {"three_phase", kBoolean, "false", "down to the initial rate as fast as up, then to the last rate"}}};
}

Curve one_cycle(const Setting& section, const CurveOptions& run) {
  const Setting& momentum = section.at("cycle_momentum");
  if (momentum.boolean()) momentum.fail("momentum cannot be cycled; only false");
  const int64_t steps = total_steps(section, run);
  const double peak = multiple_of_base(section.at("max_lr"), run.base_lr);
  const Between between = section.at("anneal_strategy").text() == "cos" ? cosine_between : line_between;
  return [all = phases(section, peak, static_cast<double>(steps)), between, steps](int64_t step) {
    const auto now = static_cast<double>(std::min(step, steps - 1));
    double begin = 0.0;
    auto phase = all.begin();
    for (; phase + 1 != all.end() && now > phase->end; ++phase) begin = phase->end;
    return between(phase->from, phase->to, (now - begin) / (phase->end - begin));
  };
}

}  // namespace tutti
