#include <gtest/gtest.h>

#include "algorithms/surgery/squeeze_excite.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kSqueezeFile = "squeeze_excite.h5";

class GoldenSqueezeExcite : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSqueezeExcite, IsComposers) {
  const GoldenCase c(golden_path(kSqueezeFile), GetParam());
  ASSERT_TRUE(c.text("composer_api").ends_with("apply_squeeze_excite")) << c.title();
  c.expect_only({"arch_before", "latent_channels", "min_channels", "replaced"}, {"x", "grad_y", "weights"});
  c.expect_only_outputs({"y", "grad_x", "grad"});
  const auto model = sequential_of(c.text("arch_before"));
  const auto replaced = indices_of(c, "replaced");
  EXPECT_EQ(apply_squeeze_excite(*model, c.number("latent_channels"),
                                 static_cast<int64_t>(c.number("min_channels"))),
            static_cast<int>(replaced.size()));
  EXPECT_EQ(places_of(*model, "SqueezeExciteConv2d"), replaced) << c.title();
  materialise(*model, 1);
  load_weights(c, *model);
  expect_gradients(c, *model, parameters(*model));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSqueezeExcite, testing::ValuesIn(golden_cases(golden_path(kSqueezeFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSqueezeExcite);

}  // namespace
}  // namespace tutti
