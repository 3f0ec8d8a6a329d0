#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/probe/probe.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

using enum KeyType;

// Passed fraction of the time from `begin` to `end`, in [0, 1]; 0 if the span is empty.
double fraction_of(const Timestamp& now, const Time& begin, const Time& end) {
  const double span = end.value() - begin.value();
  return span > 0.0 ? std::min(1.0, (now.get(end.unit()).value() - begin.value()) / span) : 0.0;
}

double fraction_of(const Timestamp& now, const Time& end) { return fraction_of(now, {0.0, end.unit()}, end); }

double line(double part, double from, double to) { return from + part * (to - from); }

double half_cosine(double part, double to) {
  return to + (1.0 - to) * (1.0 + std::cos(std::clamp(part, 0.0, 1.0) * std::numbers::pi)) / 2.0;
}

// Like Python's **, but an error where Python gives a complex number or divides by zero.
double power_of(double base, double exponent) {
  const double value = std::pow(base, exponent);
  if (!std::isfinite(value)) throw UserError("the schedule's power is not a finite number");
  return value;
}

double power_curve(double part, double power, double to) {
  return to + power_of(1.0 - part, power) * (1.0 - to);
}

Schedule constant(const ScheduleReader& in) {
  return [alpha = in.number("alpha"), end = in.time("t_max")](const Timestamp& now) {
    return now.get(end.unit()) < end ? alpha : 1.0;
  };
}

Schedule step(const ScheduleReader& in) {
  return [size = in.positive_time("step_size"), gamma = in.number("gamma")](const Timestamp& now) {
    return std::pow(gamma, std::floor((now.get(size.unit()) / size).value()));
  };
}

Schedule multistep(const ScheduleReader& in) {
  return [milestones = in.times("milestones"), gamma = in.number("gamma")](const Timestamp& now) {
    double alpha = 1.0;
    for (const Time& milestone : milestones)
      if (now.get(milestone.unit()) >= milestone) {
        TUTTI_PROBE("schedule: a milestone is passed");
        alpha *= gamma;
      }
    return alpha;
  };
}

Schedule linear(const ScheduleReader& in) {
  return [from = in.number("alpha_i"), to = in.number("alpha_f"), end = in.positive_time("t_max")](
             const Timestamp& now) { return line(fraction_of(now, end), from, to); };
}

Schedule exponential(const ScheduleReader& in) {
  return [gamma = in.number("gamma"), period = in.positive_time("decay_period")](const Timestamp& now) {
    return power_of(gamma, (now.get(period.unit()) / period).value());
  };
}

Schedule cosine_annealing(const ScheduleReader& in) {
  return [end = in.positive_time("t_max"), to = in.number("alpha_f")](const Timestamp& now) {
    return half_cosine(fraction_of(now, end), to);
  };
}

// Begin and end of the half cosine at `now`; the k-th has the length t_mult^k t_0, truncated.
std::pair<Time, Time> half_cosine_at(const Time& now, const Time& t_0, double t_mult) {
  Time length = t_0;
  Time end = t_0;
  while (end <= now) {
    length = length * t_mult;
    if (length.value() < 1.0)
      throw UserError("the time between restarts shrinks to zero before the end of training");
    end = end + length;
  }
  return {end - length, end};
}

Schedule cosine_annealing_warm_restarts(const ScheduleReader& in) {
  const Time t_0 = in.positive_time("t_0");
  const double t_mult = in.number("t_mult");
  const Time whole = in.max_duration();
  try {
    const Time last = whole - Time(1, whole.unit());  // the last time that needs a rate
    if (whole.unit() == t_0.unit() && !in.unchecked()) half_cosine_at(last, t_0, t_mult);
  } catch (const UserError& error) {
    in.fail("t_mult", error.what());
  }
  return [=, to = in.number("alpha_f")](const Timestamp& now) {
    const auto [begin, end] = half_cosine_at(now.get(t_0.unit()), t_0, t_mult);
    return half_cosine(fraction_of(now, begin, end), to);
  };
}

Schedule polynomial(const ScheduleReader& in) {
  return [power = in.number("power"), end = in.positive_time("t_max"), to = in.number("alpha_f")](
             const Timestamp& now) { return power_curve(fraction_of(now, end), power, to); };
}

// End of the warm-up's line from 0 to the peak, stretched by the ratio if scale_warmup is set.
Time slope_end(const ScheduleReader& in) {
  return in.time("t_warmup", in.flag("scale_warmup") ? in.ratio() : 1.0);
}

// End of the warm-up. Composer uses the unscaled end even if the line is scaled: the warm-up then stops
// early, or late.
Time warmup_end(const ScheduleReader& in) { return in.composer() ? in.time("t_warmup", 1.0) : slope_end(in); }

// A line from 0 to `peak`, then `rest`.
Schedule with_warmup(const ScheduleReader& in, double peak, Schedule main) {
  const Time end = warmup_end(in), top = slope_end(in);
  if (in.time("t_warmup", 1.0).value() > 0.0 && top.value() <= 0.0)
    in.fail("t_warmup", "the scale-schedule ratio shrinks the warm-up to zero");
  return [=, main = std::move(main)](const Timestamp& now) {
    if (now.get(end.unit()) == end) TUTTI_PROBE("schedule: the first step after a warm-up");
    return now.get(end.unit()) < end ? line(fraction_of(now, top), 0.0, peak) : main(now);
  };
}

Schedule multistep_with_warmup(const ScheduleReader& in) { return with_warmup(in, 1.0, multistep(in)); }

Schedule line_with_warmup(const ScheduleReader& in, double from, double to) {
  const Time begin = warmup_end(in);
  return with_warmup(in, from, [=, end = in.end_after(begin)](const Timestamp& now) {
    return line(fraction_of(now, begin, end), from, to);
  });
}

// Stays at alpha after t_max, unlike `constant`.
Schedule constant_with_warmup(const ScheduleReader& in) {
  return line_with_warmup(in, in.number("alpha"), in.number("alpha"));
}

Schedule linear_with_warmup(const ScheduleReader& in) {
  return line_with_warmup(in, in.number("alpha_i"), in.number("alpha_f"));
}

Schedule cosine_annealing_with_warmup(const ScheduleReader& in) {
  const Time begin = warmup_end(in);
  return with_warmup(in, 1.0,
                     [=, to = in.number("alpha_f"), end = in.end_after(begin)](const Timestamp& now) {
                       return half_cosine(fraction_of(now, begin, end), to);
                     });
}

Schedule polynomial_with_warmup(const ScheduleReader& in) {
  const Time begin = warmup_end(in);
  return with_warmup(
      in, 1.0,
      [=, power = in.number("power"), to = in.number("alpha_f"), end = in.end_after(begin)](
          const Timestamp& now) { return power_curve(fraction_of(now, begin, end), power, to); });
}

// A scheduler: its entry in the catalog, and its maker.
struct ComposerScheduler {
  Entry entry;
  Schedule (*make)(const ScheduleReader&);
};

Key t_max() { return {"t_max", kTime, "1dur", "end of the schedule"}; }

Key alpha(const char* name, const char* doc) { return Key{name, kNumber, "1", doc}.at_least(0); }

Key alpha_f() { return Key{"alpha_f", kNumber, "0", "the multiplier at the end"}.at_least(0); }

Key gamma() { return Key{"gamma", kNumber, "0.1", "the multiplier's factor"}.more_than(0); }

Key milestones() { return {"milestones", kTimes, "", "times at which the multiplier changes by gamma"}; }

Key power(const char* fallback) {
  return Key{"power", kNumber, fallback, "exponent of the remaining fraction"}.more_than(0);
}

std::vector<ComposerScheduler> plain_schedulers() {
  return {
      {{"constant", "The same multiplier up to t_max.", {alpha("alpha", "the multiplier"), t_max()}},
       constant},
      {{"step",
        "Times gamma after every step_size.",
        {{"step_size", kTime, "", "time between two steps"}, gamma()}},
       step},
      {{"multistep", "Times gamma at each milestone.", {milestones(), gamma()}}, multistep},
      {{"linear",
        "In a straight line from alpha_i to alpha_f.",
        {alpha("alpha_i", "the multiplier at the start"), alpha_f(), t_max()}},
       linear},
      {{"exponential",
        "gamma to the power of the time in decay periods.",
        {Key{"gamma", kNumber, "", "the multiplier's factor"}.more_than(0),
         {"decay_period", kTime, "1ep", "time of one factor"}}},
       exponential},
      {{"cosine_annealing", "Down a half cosine to alpha_f at t_max.", {t_max(), alpha_f()}},
       cosine_annealing},
      {{"cosine_annealing_warm_restarts",
        "Half cosines, each t_mult times as long as the one before (Loshchilov and Hutter, 2016).",
        {{"t_0", kTime, "", "length of the first"},
         Key{"t_mult", kNumber, "1", "growth of the length"}.more_than(0),
         alpha_f()}},
       cosine_annealing_warm_restarts},
      {{"polynomial", "A power of the remaining fraction, down to alpha_f.", {power(""), t_max(), alpha_f()}},
       polynomial},
  };
}

std::vector<ComposerScheduler> warmup_schedulers() {
  const char* peak = "the multiplier after the warm-up";
  std::vector<ComposerScheduler> rows = {
      {{"constant_with_warmup", "A linear warm-up, then constant.", {alpha("alpha", peak), t_max()}},
       constant_with_warmup},
      {{"multistep_with_warmup", "A linear warm-up, then multistep.", {milestones(), gamma()}},
       multistep_with_warmup},
      {{"linear_with_warmup", "A linear warm-up, then linear.", {alpha("alpha_i", peak), alpha_f(), t_max()}},
       linear_with_warmup},
      {{"cosine_annealing_with_warmup", "A linear warm-up, then cosine annealing.", {t_max(), alpha_f()}},
       cosine_annealing_with_warmup},
      {{"polynomial_with_warmup", "A linear warm-up, then polynomial.", {power("2"), t_max(), alpha_f()}},
       polynomial_with_warmup},
  };
  for (ComposerScheduler& row : rows) {
    std::vector<Key>& keys = row.entry.keys;
    keys.insert(keys.begin(), {"t_warmup", kTime, "", "length of the rise from 0 before the schedule"});
    keys.push_back({"scale_warmup", kBoolean, "false", "scale_schedule_ratio also scales the warm-up"});
  }
  return rows;
}

const std::vector<ComposerScheduler>& schedulers() {
  static const std::vector<ComposerScheduler> all = [] {
    std::vector<ComposerScheduler> rows = plain_schedulers();
    for (ComposerScheduler& row : warmup_schedulers()) rows.push_back(std::move(row));
    for (ComposerScheduler& row : rows)
      row.entry.keys.push_back(
          Key{"step", kText, "batch", "the rate changes with every batch or with every epoch"}.one_of(
              {"epoch", "batch"}));
    return rows;
  }();
  return all;
}

const ComposerScheduler* scheduler_of(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  const auto row = std::ranges::find_if(schedulers(),
                                        [&](const ComposerScheduler& one) { return one.entry.name == kind; });
  return row == schedulers().end() ? nullptr : &*row;
}

}  // namespace

std::vector<Entry> composer_schedulers() {
  std::vector<Entry> entries;
  for (const ComposerScheduler& row : schedulers()) entries.push_back(row.entry);
  return entries;
}

bool is_composer_schedule(const Setting& section) { return scheduler_of(section) != nullptr; }

Schedule make_composer_schedule(const Setting& section, const Horizon& horizon) {
  const ComposerScheduler* row = scheduler_of(section);
  return row ? row->make(ScheduleReader(section, horizon)) : Schedule();
}

}  // namespace tutti
