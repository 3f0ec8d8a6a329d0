#include <algorithm>
#include <cmath>
#include <numbers>

#include "training/schedules/schedule.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr const char* kName = "warmup_stable_decay";

// The part of the way from 0 to 1 that is done after so much of the time.
using Rise = double (*)(double passed);

Rise rise_of(const std::string& type) {
  if (type == "linear") return [](double passed) { return passed; };
  if (type == "cosine")
    return [](double passed) { return 0.5 * (1.0 - std::cos(std::numbers::pi * passed)); };
  return [](double passed) { return 1.0 - std::sqrt(1.0 - passed); };
}

// From 1 to 0.
Rise fall_of(const std::string& type) {
  if (type == "linear") return [](double passed) { return 1.0 - passed; };
  if (type == "cosine")
    return [](double passed) { return 0.5 * (1.0 + std::cos(std::numbers::pi * passed)); };
  return [](double passed) { return 1.0 - std::sqrt(passed); };
}

Key type_key(const char* name, const char* fallback, const char* doc) {
  return Key{name, kText, fallback, doc}.one_of({"linear", "cosine", "1-sqrt"});
}

}  // namespace

Entry warmup_stable_decay() {
  return {
      kName,
      "A warm-up, then 1, then down to min_lr_ratio at t_max (MiniCPM: Hu et al., 2024); as transformers' "
      "get_wsd_schedule.",
      {{"t_warmup", kTime, "", "length of the rise from min_lr_ratio"},
       {"t_decay", kTime, "", "length of the decay"},
       {"t_max", kTime, "1dur", "end of the decay"},
       type_key("warmup_type", "linear", "shape of the rise"),
       type_key("decay_type", "cosine", "shape of the decay"),
       Key{"min_lr_ratio", kNumber, "0", "the multiplier at the start and from t_max on"}.at_least(0).at_most(
           1),
       {"scale_warmup", kBoolean, "false", "scale_schedule_ratio also scales the warm-up"}}};
}

Schedule make_warmup_stable_decay(const Setting& section, const Horizon& horizon) {
  if (section.at("kind").text() != kName) return {};
  const ScheduleReader in(section, horizon);
  const Time warmup = in.time("t_warmup", in.flag("scale_warmup") ? in.ratio() : 1.0);
  const Time decay = in.time("t_decay"), end = in.end_after(warmup);
  if (decay.unit() != end.unit())
    in.fail("t_decay",
            std::string("it counts in ") + suffix(decay.unit()) + " and t_max in " + suffix(end.unit()));
  const double rises = warmup.value(), falls = decay.value(), begin = end.value() - falls;
  if (begin < rises)
    in.fail("t_decay", "the decay would begin at " + Time(begin, end.unit()).text() +
                           ", before the warm-up ends at " + warmup.text());
  const Rise rise = rise_of(section.at("warmup_type").text()),
             fall = fall_of(section.at("decay_type").text());
  return [=, unit = end.unit(), least = in.number("min_lr_ratio")](const Timestamp& now) {
    const double at = now.get(unit).value();
    const auto above_least = [&](double part) { return part * (1.0 - least) + least; };
    if (at < rises) return above_least(rise(at / rises));
    if (at < begin) return 1.0;
    return at < end.value() ? above_least(fall((at - begin) / falls)) : least;
  };
}

}  // namespace tutti
