
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cctype>

#include "tests/recipe/section.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/options.h"
#include "training/metrics/factory.h"
#include "training/metrics/options.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

const auto kName = [](const auto& info) { return info.param; };

class CatalogOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(CatalogOptimizer, StepsWithItsDefaults) {
  std::vector<ParamView> views{whole_view("weight", at::ones({3}))};
  views[0].grad = at::ones({3});
  make_optimizer(smallest_section(optimizer_catalog(), GetParam()), views)->step();
  EXPECT_TRUE(views[0].tensor.lt(1).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, CatalogOptimizer, testing::ValuesIn(own_kinds(optimizer_catalog())), kName);

class CatalogSchedule : public testing::TestWithParam<std::string> {};

TEST_P(CatalogSchedule, StaysWithinZeroAndOneWithItsDefaults) {
  const Horizon horizon{Time(4, TimeUnit::kEpoch), 10};
  Setting section = smallest_section(scheduler_catalog(), GetParam());
  if (Setting* total = section.find("total_steps")) total->value = int64_t{4};  // it, or two others
  const Schedule alpha = make_schedule(section, horizon);
  for (int64_t batch = 0; batch <= 40; ++batch) {
    const Timestamp now{.epoch = batch / 10, .batch = batch};
    EXPECT_GE(alpha(now), 0.0);
    EXPECT_LE(alpha(now), 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CatalogSchedule, testing::ValuesIn(own_kinds(scheduler_catalog())), kName);

class CatalogMetric : public testing::TestWithParam<std::string> {};

TEST_P(CatalogMetric, IsMadeUnderItsName) {
  EXPECT_EQ(make_metric(smallest_section(metric_catalog(), GetParam()), /*composer=*/false,
                        {.classes = 3, .labels = 3})
                ->name(),
            GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, CatalogMetric, testing::ValuesIn(own_kinds(metric_catalog())), kName);

class CatalogCallback : public testing::TestWithParam<std::string> {};

TEST_P(CatalogCallback, IsMadeWithItsDefaults) {
  PosixDisk disk;
  const auto made = make_callback(smallest_section(callback_catalog(), GetParam()), {disk});
  std::string plain;  // "OOMObserver" of "oom_observer"
  for (const char c : GetParam())
    if (c != '_') plain += c;
  std::string name = made->name();
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  EXPECT_EQ(name, plain);
}

INSTANTIATE_TEST_SUITE_P(All, CatalogCallback, testing::ValuesIn(own_kinds(callback_catalog())), kName);

}  // namespace
}  // namespace tutti
