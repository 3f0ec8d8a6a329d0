#include "training/schedules/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key t_max() { return {"t_max", kTime, "1dur", "end of the schedule"}; }

Key alpha_f() { return Key{"alpha_f", kNumber, "0", "the multiplier at the end"}.at_least(0); }

Key gamma() { return Key{"gamma", kNumber, "0.1", "the multiplier's factor"}.more_than(0); }

Key milestones() { return {"milestones", kTimes, "", "times at which the multiplier changes by gamma"}; }

Key power() { return Key{"power", kNumber, "", "exponent of the remaining fraction"}.more_than(0); }

std::vector<Key> with_warmup(std::vector<Key> keys) {
  keys.insert(keys.begin(), Key{"t_warmup", kTime, "", "length of the rise from 0 before the schedule"});
  keys.push_back({"scale_warmup", kBoolean, "false", "scale_schedule_ratio also scales the warm-up"});
  return keys;
}

std::vector<Entry> plain_schedules() {
  return {
      {"constant",
       "The same multiplier up to t_max.",
       {Key{"alpha", kNumber, "1", "the multiplier"}.at_least(0), t_max()}},
      {"step",
       "Times gamma after every step_size.",
       {{"step_size", kTime, "", "time between two steps"}, gamma()}},
      {"multistep", "Times gamma at each milestone.", {milestones(), gamma()}},
      {"linear",
       "In a straight line from alpha_i to alpha_f.",
       {Key{"alpha_i", kNumber, "1", "the multiplier at the start"}.at_least(0), alpha_f(), t_max()}},
      {"exponential",
       "gamma to the power of the time in decay periods.",
       {Key{"gamma", kNumber, "", "the multiplier's factor"}.more_than(0),
        {"decay_period", kTime, "1ep", "time of one factor"}}},
      {"cosine_annealing", "Down a half cosine to alpha_f at t_max.", {t_max(), alpha_f()}},
      {"cosine_annealing_warm_restarts",
       "Half cosines, each t_mult times as long as the one before (Loshchilov and Hutter, 2016).",
       {{"t_0", kTime, "", "length of the first"},
        Key{"t_mult", kNumber, "1", "growth of the length"}.more_than(0),
        alpha_f()}},
      {"polynomial", "A power of the remaining fraction, down to alpha_f.", {power(), t_max(), alpha_f()}},
  };
}

std::vector<Entry> warmup_schedules() {
  const Key alpha = Key{"alpha", kNumber, "1", "the multiplier after the warm-up"}.at_least(0);
  const Key alpha_i = Key{"alpha_i", kNumber, "1", "the multiplier after the warm-up"}.at_least(0);
  return {
      {"constant_with_warmup", "A linear warm-up, then constant.", with_warmup({alpha, t_max()})},
      {"multistep_with_warmup", "A linear warm-up, then multistep.", with_warmup({milestones(), gamma()})},
      {"linear_with_warmup", "A linear warm-up, then linear.", with_warmup({alpha_i, alpha_f(), t_max()})},
      {"cosine_annealing_with_warmup", "A linear warm-up, then cosine annealing.",
       with_warmup({t_max(), alpha_f()})},
      {"polynomial_with_warmup", "A linear warm-up, then polynomial.",
       with_warmup({Key{"power", kNumber, "2", "exponent of the remaining fraction"}.more_than(0), t_max(),
                    alpha_f()})},
  };
}

}  // namespace

Catalog scheduler_catalog() {
  std::vector<Entry> entries = plain_schedules();
  for (auto& entry : warmup_schedules()) entries.push_back(std::move(entry));
  for (Entry& entry : entries)
    entry.keys.push_back(
        Key{"step", kText, "batch", "the rate changes with every batch or with every epoch"}.one_of(
            {"epoch", "batch"}));
  for (auto& entry : pytorch_schedulers()) entries.push_back(std::move(entry));
  return {.section = "scheduler",
          .noun = "scheduler",
          .doc =
              "The schedule of the learning rate. Names and meanings are Composer's; kinds with lr in the "
              "name are "
              "PyTorch's, and count steps of the scheduler.",
          .entries = std::move(entries),
          .default_kind = "constant"};
}

}  // namespace tutti
