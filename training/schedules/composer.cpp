#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "training/schedules/schedule.h"

namespace tutti {
namespace {

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
      if (now.get(milestone.unit()) >= milestone) alpha *= gamma;
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

using ScheduleMaker = Schedule (*)(const ScheduleReader&);

const std::map<std::string, ScheduleMaker>& schedule_makers() {
  static const std::map<std::string, ScheduleMaker> all = {
      {"constant", constant},
      {"step", step},
      {"multistep", multistep},
      {"linear", linear},
      {"exponential", exponential},
      {"cosine_annealing", cosine_annealing},
      {"cosine_annealing_warm_restarts", cosine_annealing_warm_restarts},
      {"polynomial", polynomial},
      {"constant_with_warmup", constant_with_warmup},
      {"multistep_with_warmup", multistep_with_warmup},
      {"linear_with_warmup", linear_with_warmup},
      {"cosine_annealing_with_warmup", cosine_annealing_with_warmup},
      {"polynomial_with_warmup", polynomial_with_warmup},
  };
  return all;
}

}  // namespace

bool is_composer_schedule(const Setting& section) {
  return schedule_makers().contains(section.at("kind").text());
}

Schedule make_composer_schedule(const Setting& section, const Horizon& horizon) {
  const auto found = schedule_makers().find(section.at("kind").text());
  return found == schedule_makers().end() ? Schedule() : found->second(ScheduleReader(section, horizon));
}

}  // namespace tutti
