#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/gradient_clipping.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kFile = "gradient_clipping.h5";

const std::map<std::string, ClippingType> kTypes = {
    {"norm", ClippingType::kNorm}, {"value", ClippingType::kValue}, {"adaptive", ClippingType::kAdaptive}};

std::vector<ParamView> views_of(const GoldenCase& c, double grad_scale) {
  std::vector<ParamView> views;
  for (const std::string& name : c.names("in/param")) {
    ParamView& view = views.emplace_back(whole_view(name, c.tensor("in/param/" + name)));
    if (c.holds("in/grad/" + name)) view.grad = c.tensor("in/grad/" + name) * grad_scale;
  }
  return views;
}

void clip(const GoldenCase& c, const std::vector<ParamView>& views, double grad_scale) {
  apply_gradient_clipping(views, known(kTypes, c.text("clipping_type"), "kind of clipping"),
                          c.number("clipping_threshold"), grad_scale);
}

// The kind of clipping of a recipe; throws UserError for an unknown kind.
void resolve_kind(const GoldenCase& c) {
  const std::string recipe =
      "[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 8\nbatch_size = 4\nshape = [2]\n"
      "[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ep'\n[[algorithms]]\nkind = 'gradient_clipping'\n"
      "clipping_threshold = 0.5\nclipping_type = '";
  resolve_recipe(parse_recipe(recipe + c.text("clipping_type") + "'\n", "clipping.toml"));
}

class GoldenGradientClipping : public testing::TestWithParam<std::string> {};

// In training gradients come as sums over `scale` samples.
TEST_P(GoldenGradientClipping, ClipsAsComposerDoes) {
  const GoldenCase c(golden_path(kFile), GetParam());
  c.expect_only({"clipping_type", "clipping_threshold"}, {"param", "grad"});
  if (c.has("error")) {
    EXPECT_THROW(resolve_kind(c), UserError) << c.title();
    return;
  }
  EXPECT_NO_THROW(resolve_kind(c)) << c.title();
  c.expect_only_outputs({"grad"});
  for (const double scale : {1.0, 48.0}) {
    const auto views = views_of(c, scale);
    clip(c, views, scale);
    for (const ParamView& view : views) {
      EXPECT_EQ(view.grad.defined(), c.holds("out/grad/" + view.name)) << c.title() << ": " << view.name;
      if (view.grad.defined()) c.expect_close(view.grad / scale, "out/grad/" + view.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGradientClipping, testing::ValuesIn(golden_cases(golden_path(kFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGradientClipping);

}  // namespace
}  // namespace tutti
