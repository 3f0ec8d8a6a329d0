#include "models/zoo/catalog.h"

#include <gtest/gtest.h>

#include "models/zoo/factory.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

class CatalogModel : public testing::TestWithParam<std::string> {};

TEST_P(CatalogModel, IsBuiltFromItsDefaults) {
  const bool causal = GetParam() == "gpt" || GetParam() == "llama";
  const bool text = causal || GetParam().starts_with("bert");
  const bool labels = !causal && GetParam() != "bert_mlm";
  SampleSpec samples{
      .shapes = {{"input", text ? Shape{32} : Shape{3, 32, 32}}, {"target", labels ? Shape{} : Shape{32}}},
      .classes = text ? 256 : 10};
  if (GetParam() == "unet") samples.shapes["target"] = {32, 32};
  if (GetParam() == "bert_contrastive") samples.shapes["positive_ids"] = Shape{24};
  const auto model = make_model(smallest_section(model_catalog(), GetParam()), samples);
  EXPECT_FALSE(parameters(*model).empty());
}

// All but those that a program or a plugin has, and those that need a file, layers or a size of the recipe.
std::vector<std::string> own_kinds() {
  auto kinds = model_catalog().kinds();
  std::erase_if(kinds, [](const std::string& kind) {
    return kind == "program" || kind == "plugin" || kind == "sequential" || kind == "exported" ||
           kind == "torchscript" || kind == "hf" || kind == "diffusion_unet";
  });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(All, CatalogModel, testing::ValuesIn(own_kinds()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
