#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/device/nets.h"
#include "tests/device/test_device.h"

namespace tutti::test_device {
namespace {

using testing::IsEmpty;

struct Case {
  const char* name;
  Training training;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class TrainingOnTheDevice : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    install();
    set_mode(Mode::kEager);
    set_autocast(AutocastPolicy::kCpu);
    take_findings();
  }
  void TearDown() override { set_mode(Mode::kEager); }
};

TEST_P(TrainingOnTheDevice, HasTheBitsOfTheCpu) {
  const auto expected = train(at::kCPU, GetParam().training);
  for (const Mode mode : {Mode::kEager, Mode::kLate}) {
    set_mode(mode);
    const auto trained = train(device(), GetParam().training);
    ASSERT_EQ(trained.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(trained[i].equal(expected[i])) << "result " << i << ", late: " << (mode == Mode::kLate);
    EXPECT_THAT(take_findings(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Of, TrainingOnTheDevice,
                         testing::Values(Case{"Mlp", {Net::kMlp}}, Case{"Conv", {Net::kConv}},
                                         Case{"Gpt", {Net::kGpt}},
                                         Case{"MlpInBfloat16", {Net::kMlp, 3, at::kBFloat16}},
                                         Case{"ConvInBfloat16", {Net::kConv, 3, at::kBFloat16}},
                                         Case{"GptInBfloat16", {Net::kGpt, 3, at::kBFloat16}},
                                         Case{"MlpInFloat16", {Net::kMlp, 3, at::kHalf}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti::test_device
