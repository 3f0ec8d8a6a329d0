#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

const std::string kMetricFile = own_path("torch_metrics.h5");
const std::set<std::string> kTextParameters = {"kind", "average", "normalize", "multioutput",
                                               "empty_target_action"};
const std::set<std::string> kWholeParameters = {"num_classes", "num_labels", "num_outputs", "thresholds",
                                                "top_k"};

MetricPtr metric_of_case(const GoldenCase& c) {
  std::vector<std::pair<std::string, Setting::Value>> keys;
  for (const std::string& key : kTextParameters)
    if (c.has(key)) keys.emplace_back(key, c.text(key));
  for (const std::string& key : kWholeParameters)
    if (c.has(key)) keys.emplace_back(key, static_cast<int64_t>(c.number(key)));
  if (c.has("threshold")) keys.emplace_back("threshold", c.number("threshold"));
  return make_metric(section_with(keys));
}

at::Tensor values_of(const Metric& metric) {
  EXPECT_EQ(metric.values().size(), metric.parts().size());
  return at::tensor(metric.values(), at::kDouble);
}

class TorchMetric : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kUpdates = 2;
  at::Tensor input(const std::string& name, int64_t i) const {
    return case_.tensor("in/" + name + "_" + std::to_string(i));
  }
  const GoldenCase case_{kMetricFile, GetParam()};
};

TEST_P(TorchMetric, HasTorchmetricsValues) {
  std::set<std::string> parameters = kTextParameters;
  parameters.insert(kWholeParameters.begin(), kWholeParameters.end());
  parameters.insert("threshold");
  case_.expect_only(parameters, {"outputs_0", "target_0", "outputs_1", "target_1"});
  const MetricPtr metric = metric_of_case(case_);
  EXPECT_EQ(metric->name(), case_.text("kind"));
  for (int64_t i = 0; i < kUpdates; ++i) metric->update(input("outputs", i), input("target", i));
  case_.expect_close(values_of(*metric), "out/values");
}

// Each sample on another of three ranks; one of them may have none.
TEST_P(TorchMetric, HasThemFromTheSumsOfRanksToo) {
  const MetricPtr ranks[3] = {metric_of_case(case_), metric_of_case(case_), metric_of_case(case_)};
  for (int64_t i = 0; i < kUpdates; ++i)
    for (int64_t n = 0; n < input("outputs", i).size(0); ++n)
      ranks[n % 3]->update(input("outputs", i).narrow(0, n, 1), input("target", i).narrow(0, n, 1));
  for (const int other : {1, 2})
    for (size_t s = 0; s < ranks[0]->sums().size(); ++s) ranks[0]->sums()[s] += ranks[other]->sums()[s];
  case_.expect_close(values_of(*ranks[0]), "out/values");
}

INSTANTIATE_TEST_SUITE_P(All, TorchMetric, testing::ValuesIn(golden_cases(kMetricFile)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
