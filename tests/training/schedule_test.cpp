#include "training/schedule.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::map<std::string, std::string> kKinds = {
    {"StepScheduler", "step"},
    {"MultiStepScheduler", "multistep"},
    {"ConstantScheduler", "constant"},
    {"LinearScheduler", "linear"},
    {"ExponentialScheduler", "exponential"},
    {"CosineAnnealingScheduler", "cosine_annealing"},
    {"CosineAnnealingWarmRestartsScheduler", "cosine_annealing_warm_restarts"},
    {"PolynomialScheduler", "polynomial"},
    {"MultiStepWithWarmupScheduler", "multistep_with_warmup"},
    {"ConstantWithWarmupScheduler", "constant_with_warmup"},
    {"LinearWithWarmupScheduler", "linear_with_warmup"},
    {"CosineAnnealingWithWarmupScheduler", "cosine_annealing_with_warmup"},
    {"PolynomialWithWarmupScheduler", "polynomial_with_warmup"},
};

Setting::Value milestones(const std::string& joined) {
  std::vector<Setting::Value> items;
  std::istringstream in(joined);
  for (std::string item; std::getline(in, item, ',');) items.emplace_back(item);
  return golden_list(items);
}

// A section with Composer's defaults where the case leaves a key out.
Setting section_of(const GoldenCase& c) {
  const auto text = [&](const char* key, const char* fallback) {
    return c.has(key) ? c.text(key) : fallback;
  };
  const auto number = [&](const char* key, double fallback) { return c.has(key) ? c.number(key) : fallback; };
  return golden_section({{"kind", kKinds.at(c.text("scheduler"))},
                         {"t_max", text("t_max", "1dur")},
                         {"t_warmup", text("t_warmup", "0ba")},
                         {"t_0", text("t_0", "1ep")},
                         {"step_size", text("step_size", "1ep")},
                         {"decay_period", text("decay_period", "1ep")},
                         {"milestones", milestones(text("milestones", ""))},
                         {"alpha", number("alpha", 1.0)},
                         {"alpha_i", number("alpha_i", 1.0)},
                         {"alpha_f", number("alpha_f", 0.0)},
                         {"gamma", number("gamma", 0.1)},
                         {"power", number("power", 2.0)},
                         {"t_mult", number("t_mult", 1.0)},
                         {"scale_warmup", number("scale_warmup", 0.0) != 0.0}});
}

Horizon horizon_of(const GoldenCase& c) {
  return {Time::parse(c.text("max_duration_scaled")), static_cast<int64_t>(c.number("dataloader_len")),
          c.number("scale_schedule_ratio")};
}

Timestamp moment(const GoldenCase& c, int64_t batch) {
  return {.epoch = batch / static_cast<int64_t>(c.number("dataloader_len")),
          .batch = batch,
          .sample = batch * static_cast<int64_t>(c.number("batch_size")),
          .token = batch * static_cast<int64_t>(c.number("tokens_per_batch"))};
}

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, GivesComposersMultipliers) {
  const GoldenCase c("schedulers.h5", GetParam());
  if (c.has("error")) {
    EXPECT_THROW(make_schedule(section_of(c), horizon_of(c)), UserError);
    return;
  }
  const Schedule schedule = make_schedule(section_of(c), horizon_of(c));
  const at::Tensor batches = c.tensor("in/batch");
  at::Tensor alphas = at::empty(batches.sizes(), at::kDouble);
  for (int64_t i = 0; i < batches.numel(); ++i) alphas[i] = schedule(moment(c, batches[i].item<int64_t>()));
  c.expect_close(alphas, "out/alpha");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSchedule, testing::ValuesIn(golden_cases("schedulers.h5")),
                         [](const auto& info) { return info.param; });

TEST(Schedule, UnlikeWarmupAndEndIsAUserErrorThatNamesTheKey) {
  const Setting section = golden_section({{"kind", std::string("linear_with_warmup")},
                                          {"t_warmup", std::string("80sp")},
                                          {"t_max", std::string("4ep")},
                                          {"alpha_i", 1.0},
                                          {"alpha_f", 0.0},
                                          {"scale_warmup", false}});
  const Horizon horizon{Time::parse("4ep"), 10};
  EXPECT_THAT([&] { make_schedule(section, horizon); }, ThrowsMessage<UserError>(HasSubstr("section.t_max")));
}

}  // namespace
}  // namespace tutti
