#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "training/schedules/one_cycle.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

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
  std::vector<int64_t> found;
  for (const Setting& item : milestones.array()) {
    const int64_t least = found.empty() ? 0 : found.back() + (may_repeat ? 0 : 1);
    if (item.integer() < least)
      item.fail("milestones must ascend; expected at least " + std::to_string(least));
    found.push_back(item.integer());
  }
  return found;
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

struct Maker {
  Curve (*make)(const Setting& section, const CurveOptions& run);
  bool scales = false;  // by the scale-schedule ratio, as in Composer
};

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all = {
      {"step_lr", {step, true}},
      {"multistep_lr", {multistep, true}},
      {"constant_lr", {constant}},
      {"linear_lr", {linear}},
      {"exponential_lr", {exponential, true}},
      {"cosine_annealing_lr", {cosine_annealing, true}},
      {"cosine_annealing_warm_restarts_lr", {cosine_annealing_warm_restarts, true}},
      {"polynomial_lr", {polynomial}},
      {"one_cycle_lr", {one_cycle}},
      {"reduce_lr_on_plateau", {reduce_on_plateau}},
      {"sequential_lr", {sequential}},
  };
  return all;
}

Curve make_curve(const Setting& section, const CurveOptions& run) {
  const auto found = makers().find(section.at("kind").text());
  if (found == makers().end()) return {};
  if (run.ratio != 1.0 && !found->second.scales)
    section.at("kind").fail("the scale-schedule ratio does not apply to this scheduler");
  return found->second.make(section, run);
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
