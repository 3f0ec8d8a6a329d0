#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

const std::set<std::string> kOfTheRun = {"scheduler",       "max_duration", "max_duration_scaled",
                                         "dataloader_len",  "batch_size",   "scale_schedule_ratio",
                                         "tokens_per_batch"};

// Times are texts, or numbers of epochs.
std::vector<Setting::Value> times(const GoldenCase& c, const std::string& key) {
  std::vector<Setting::Value> items;
  if (c.is_text(key))
    for (const std::string& part : parts_of(c.text(key))) items.emplace_back(part);
  else
    for (const double epochs : c.numbers(key)) items.emplace_back(static_cast<int64_t>(epochs));
  return items;
}

// A section with Composer's defaults where the case leaves a key out.
Setting scheduler_section(const GoldenCase& c) {
  std::vector<std::pair<std::string, Setting::Value>> keys = {
      {"kind", recipe_kind("[scheduler]", c.text("composer_api"))}};
  std::set<std::string> parameters = kOfTheRun;
  const auto time = [&](const char* key, const char* fallback) {
    parameters.insert(key);
    keys.emplace_back(key, c.has(key) ? times(c, key).at(0) : Setting::Value(std::string(fallback)));
  };
  const auto number = [&](const char* key, double fallback) {
    parameters.insert(key);
    keys.emplace_back(key, c.has(key) ? c.number(key) : fallback);
  };
  time("t_max", "1dur");
  for (const char* key : {"t_0", "step_size", "decay_period"}) time(key, "1ep");
  time("t_warmup", "0ba");
  for (const char* key : {"alpha", "alpha_i", "t_mult"}) number(key, 1.0);
  number("alpha_f", 0.0);
  number("gamma", 0.1);
  number("power", 2.0);
  keys.emplace_back("milestones",
                    list_value(c.has("milestones") ? times(c, "milestones") : std::vector<Setting::Value>()));
  keys.emplace_back("scale_warmup", c.has("scale_warmup") && c.number("scale_warmup") != 0.0);
  parameters.insert({"milestones", "scale_warmup"});
  c.expect_only(parameters, {"batch"});
  return section_with(keys);
}

// The time that a parameter is.
Time time_of(const GoldenCase& c, const std::string& key) {
  return Time::parse(Setting(times(c, key).at(0), key, {}));
}

double number_or(const GoldenCase& c, const char* key, double fallback) {
  return c.has(key) ? c.number(key) : fallback;
}

Horizon horizon_of(const GoldenCase& c, bool composer) {
  const double ratio = number_or(c, "scale_schedule_ratio", 1.0);
  const Time whole =
      c.has("max_duration_scaled") ? time_of(c, "max_duration_scaled") : time_of(c, "max_duration") * ratio;
  return {whole, static_cast<int64_t>(c.number("dataloader_len")), ratio, composer, /*unchecked=*/true};
}

Timestamp moment(const GoldenCase& c, int64_t batch) {
  return {.epoch = batch / static_cast<int64_t>(c.number("dataloader_len")),
          .batch = batch,
          .sample = batch * static_cast<int64_t>(number_or(c, "batch_size", 0.0)),
          .token = batch * static_cast<int64_t>(number_or(c, "tokens_per_batch", 0.0))};
}

at::Tensor multipliers(const GoldenCase& c, bool composer = true) {
  const Schedule schedule = make_schedule(scheduler_section(c), horizon_of(c, composer));
  const at::Tensor batches = c.tensor("in/batch");
  at::Tensor alphas = at::empty(batches.sizes(), at::kDouble);
  for (int64_t i = 0; i < batches.numel(); ++i) alphas[i] = schedule(moment(c, batches[i].item<int64_t>()));
  return alphas;
}

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, GivesComposersMultipliers) {
  const GoldenCase c(golden_path("schedulers.h5"), GetParam());
  c.expect_only_outputs({"alpha"});
  if (c.has("error"))
    EXPECT_THROW(multipliers(c), UserError) << c.title();
  else
    c.expect_close(multipliers(c), "out/alpha");
  const bool jumps = c.has("scale_warmup") && c.number("scale_warmup") != 0.0;
  if (!c.has("error") && !jumps) c.expect_close(multipliers(c, /*composer=*/false), "out/alpha");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSchedule, testing::ValuesIn(golden_cases(golden_path("schedulers.h5"))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSchedule);

}  // namespace
}  // namespace tutti
