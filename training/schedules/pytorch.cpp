#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "training/schedules/one_cycle.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

using enum KeyType;

// Truncated, as in Composer.
int64_t scaled(int64_t steps, double ratio) {
  return static_cast<int64_t>(static_cast<double>(steps) * ratio);
}

int64_t scaled_length(const Setting& length, double ratio) {
  const int64_t steps = scaled(length.integer(), ratio);
  if (steps < 1) length.fail("the scale-schedule ratio shrinks this to zero");
  return steps;
}

double part_of(int64_t steps, int64_t whole) {
  return static_cast<double>(std::min(steps, whole)) / static_cast<double>(whole);
}

double half_cosine(int64_t steps, int64_t whole, double low) {
  const double turn = std::numbers::pi * static_cast<double>(steps) / static_cast<double>(whole);
  return low + (1.0 - low) * (1.0 + std::cos(turn)) / 2.0;
}

Curve step(const Setting& section, const CurveOptions& run) {
  return [size = scaled_length(section.at("step_size"), run.ratio), gamma = section.at("gamma").number()](
             int64_t steps) { return std::pow(gamma, static_cast<double>(steps / size)); };
}

// Throws UserError at the first milestone out of order.
std::vector<int64_t> ascending(const Setting& milestones, bool may_repeat) {
  std::vector<int64_t> numbers;
  for (const Setting& item : milestones.array()) {
    const int64_t least = numbers.empty() ? 0 : numbers.back() + (may_repeat ? 0 : 1);
    if (item.integer() < least)
      item.fail("milestones must ascend; expected at least " + std::to_string(least));
    numbers.push_back(item.integer());
  }
  return numbers;
}

Curve multistep(const Setting& section, const CurveOptions& run) {
  std::vector<int64_t> milestones = ascending(section.at("milestones"), /*may_repeat=*/true);
  for (int64_t& milestone : milestones) milestone = scaled(milestone, run.ratio);
  return [milestones, gamma = section.at("gamma").number()](int64_t steps) {
    const auto passed = std::ranges::upper_bound(milestones, steps) - milestones.begin();
    return std::pow(gamma, static_cast<double>(passed));
  };
}

Curve constant(const Setting& section, const CurveOptions&) {
  return [factor = section.at("factor").number(), end = section.at("total_iters").integer()](int64_t steps) {
    return steps < end ? factor : 1.0;
  };
}

Curve linear(const Setting& section, const CurveOptions&) {
  return [from = section.at("start_factor").number(), to = section.at("end_factor").number(),
          end = section.at("total_iters").integer()](int64_t steps) {
    return from + (to - from) * part_of(steps, end);
  };
}

Curve exponential(const Setting& section, const CurveOptions& run) {
  return [gamma = section.at("gamma").number(), ratio = run.ratio](int64_t steps) {
    return std::pow(gamma, static_cast<double>(steps) / ratio);
  };
}

// Closed form of torch's recurrence, also beyond T_max, where the rate rises again.
Curve cosine_annealing(const Setting& section, const CurveOptions& run) {
  return [end = scaled_length(section.at("T_max"), run.ratio),
          low = multiple_of_base(section.at("eta_min"), run.base_lr)](int64_t steps) {
    return half_cosine(steps, end, low);
  };
}

Curve cosine_annealing_warm_restarts(const Setting& section, const CurveOptions& run) {
  return [first = scaled_length(section.at("T_0"), run.ratio), factor = section.at("T_mult").integer(),
          low = multiple_of_base(section.at("eta_min"), run.base_lr)](int64_t steps) {
    if (factor == 1) return half_cosine(steps % first, first, low);
    int64_t length = first;
    for (; steps >= length; length *= factor) steps -= length;
    return half_cosine(steps, length, low);
  };
}

Curve polynomial(const Setting& section, const CurveOptions&) {
  return [end = section.at("total_iters").integer(), power = section.at("power").number()](int64_t steps) {
    return std::pow(1.0 - part_of(steps, end), power);
  };
}

Curve reduce_on_plateau(const Setting&, const CurveOptions&) {
  return [](int64_t) { return 1.0; };
}

Curve make_curve(const Setting& section, const CurveOptions& run);

Curve sequential(const Setting& section, const CurveOptions& run) {
  const Setting& milestones = section.at("milestones");
  const std::vector<int64_t> begins = ascending(milestones, /*may_repeat=*/false);
  std::vector<Curve> curves;
  for (const Setting& scheduler : section.at("schedulers").array())
    curves.push_back(make_curve(scheduler, run));
  if (begins.size() + 1 != curves.size())
    milestones.fail("expected one fewer than schedulers, of which there are " +
                    std::to_string(curves.size()));
  return [begins, curves](int64_t steps) {
    const auto next = std::ranges::upper_bound(begins, steps);
    const auto i = static_cast<size_t>(next - begins.begin());
    return curves[i](i == 0 ? steps : steps - begins[i - 1]);
  };
}

// A scheduler: its entry in the catalog, and its maker.
struct PytorchScheduler {
  Entry entry;
  Curve (*make)(const Setting& section, const CurveOptions& run);
  bool scales = false;  // by the scale-schedule ratio, as in Composer
};

constexpr const char* kOneThird = "0.3333333333333333";
constexpr double kMostSteps = 1e15;

Key steps_key(const char* name, const char* fallback, const char* doc) {
  return Key{name, kInteger, fallback, doc}.at_least(1).at_most(kMostSteps);
}

Key gamma(const char* fallback) {
  return Key{"gamma", kNumber, fallback, "the learning rate's factor"}.at_least(0);
}

Key eta_min() { return Key{"eta_min", kNumber, "0", "the lowest learning rate"}.at_least(0); }

Key total_iters() { return steps_key("total_iters", "5", "steps until it ends"); }

Key factor(const char* name, const char* fallback, const char* doc) {
  return Key{name, kNumber, fallback, doc}.at_least(0).at_most(1);
}

Key milestones(const char* doc) { return Key{"milestones", kIntegers, "", doc}.at_most(kMostSteps); }

// Schedulers that sequential_lr may contain.
std::vector<PytorchScheduler> decays() {
  return {
      {{"step_lr",
        "Times gamma after every step_size steps; as torch's StepLR.",
        {steps_key("step_size", "", "steps between two changes"), gamma("0.1")}},
       step,
       /*scales=*/true},
      {{"multistep_lr",
        "Times gamma at each milestone; as torch's MultiStepLR.",
        {milestones("ascending steps at which the rate is multiplied by gamma").at_least(0), gamma("0.1")}},
       multistep,
       /*scales=*/true},
      {{"constant_lr",
        "Times factor, for the first total_iters steps; as torch's ConstantLR.",
        {factor("factor", kOneThird, "the learning rate's factor"), total_iters()}},
       constant},
      {{"linear_lr",
        "In a straight line from start_factor to end_factor; as torch's LinearLR.",
        {factor("start_factor", kOneThird, "the factor at the start").more_than(0),
         factor("end_factor", "1", "the factor after total_iters steps"), total_iters()}},
       linear},
      {{"exponential_lr", "Times gamma after every step; as torch's ExponentialLR.", {gamma("")}},
       exponential,
       /*scales=*/true},
      {{"cosine_annealing_lr",
        "Down a half cosine to eta_min, and up again beyond T_max; as torch's CosineAnnealingLR.",
        {steps_key("T_max", "", "steps of the half cosine").also_named({"t_max"}), eta_min()}},
       cosine_annealing,
       /*scales=*/true},
      {{"cosine_annealing_warm_restarts_lr",
        "Half cosines, each T_mult times as long as the one before; as torch's CosineAnnealingWarmRestarts.",
        {steps_key("T_0", "", "steps of the first").also_named({"t_0"}),
         Key{"T_mult", kInteger, "1", "growth of the length"}
             .also_named({"t_mult"})
             .at_least(1)
             .at_most(1000),
         eta_min()}},
       cosine_annealing_warm_restarts,
       /*scales=*/true},
      {{"polynomial_lr",
        "A power of the remaining fraction, down to 0; as torch's PolynomialLR.",
        {total_iters(), Key{"power", kNumber, "1", "the exponent"}.at_least(0)}},
       polynomial},
  };
}

Entry plateau_entry() {
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

std::vector<Entry> entries_of(const std::vector<PytorchScheduler>& rows) {
  std::vector<Entry> entries;
  for (const PytorchScheduler& row : rows) entries.push_back(row.entry);
  return entries;
}

Entry sequential_entry() {
  const auto inner = std::make_shared<const Catalog>(Catalog{.section = "scheduler.schedulers",
                                                             .noun = "scheduler",
                                                             .doc = "One of a sequence.",
                                                             .entries = entries_of(decays())});
  return {"sequential_lr",
          "Schedulers one after another, each from its own beginning; as torch's SequentialLR.",
          {Key{"schedulers", kTables, "", "[[scheduler.schedulers]], in their order"}.each(inner),
           milestones("steps at which the next scheduler begins; one fewer than schedulers").at_least(1)}};
}

const std::vector<PytorchScheduler>& schedulers() {
  static const std::vector<PytorchScheduler> all = [] {
    std::vector<PytorchScheduler> rows = decays();
    rows.push_back({one_cycle_entry(), one_cycle});
    rows.push_back({sequential_entry(), sequential});
    for (PytorchScheduler& row : rows)
      row.entry.keys.push_back(
          Key{"step", kText, "epoch", "step after every epoch or every batch"}.one_of({"epoch", "batch"}));
    rows.push_back({plateau_entry(), reduce_on_plateau});
    return rows;
  }();
  return all;
}

Curve make_curve(const Setting& section, const CurveOptions& run) {
  const std::string& kind = section.at("kind").text();
  const auto row =
      std::ranges::find_if(schedulers(), [&](const PytorchScheduler& one) { return one.entry.name == kind; });
  if (row == schedulers().end()) return {};
  if (run.ratio != 1.0 && !row->scales)
    section.at("kind").fail("the scale-schedule ratio does not apply to this scheduler");
  return row->make(section, run);
}

// Scheduler steps of the whole training; 0 if the duration is not in epochs or batches.
double training_steps(const Horizon& horizon, bool every_batch) {
  const Time& whole = horizon.max_duration;
  const auto batches = static_cast<double>(horizon.batches_per_epoch);
  if (whole.unit() == TimeUnit::kEpoch) return every_batch ? whole.value() * batches : whole.value();
  if (whole.unit() != TimeUnit::kBatch) return 0.0;
  return every_batch ? whole.value() : std::ceil(whole.value() / batches);
}

}  // namespace

std::vector<Entry> pytorch_schedulers() { return entries_of(schedulers()); }

double multiple_of_base(const Setting& rate, double base_lr) {
  if (rate.number() == 0.0) return 0.0;
  if (base_lr == 0.0) rate.fail("the optimizer's lr must not be 0: schedulers multiply it");
  return rate.number() / base_lr;
}

Schedule make_pytorch_schedule(const Setting& section, const Horizon& horizon) {
  const bool every_batch = section.has("step") && section.at("step").text() == "batch";
  Curve curve = make_curve(
      section, {horizon.base_lr, horizon.scale_schedule_ratio, training_steps(horizon, every_batch)});
  if (!curve) return {};
  return [curve = std::move(curve), every_batch](const Timestamp& now) {
    return curve(every_batch ? now.batch : now.epoch);
  };
}

}  // namespace tutti
