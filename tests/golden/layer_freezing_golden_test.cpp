#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "algorithms/loop/layer_freezing.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kFreezingFile = "layer_freezing.h5";

// A layer of given parameters and layers, by dotted names: "blk.0.weight".
class TreeOfLayers final : public Layer {
 public:
  explicit TreeOfLayers(const std::vector<std::string>& names) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::string>> inner;
    for (const std::string& name : names) {
      const auto dot = name.find('.');
      if (dot == std::string::npos) {
        add_parameter(name, {1}, [](at::Tensor& tensor, const at::Generator&) { tensor.fill_(1); });
        continue;
      }
      const std::string first = name.substr(0, dot);
      if (!inner.contains(first)) order.push_back(first);
      inner[first].push_back(name.substr(dot + 1));
    }
    for (const std::string& name : order) add_slot(name, std::make_shared<TreeOfLayers>(inner.at(name)));
  }
  TensorTree forward(const TensorTree& input) override { return input; }
  const char* kind() const override { return "TreeOfLayers"; }
};

class GoldenLayerFreezing : public testing::TestWithParam<std::string> {};

TEST_P(GoldenLayerFreezing, FreezesWhatComposerFreezes) {
  const GoldenCase c(golden_path(kFreezingFile), GetParam());
  c.expect_only({"layers", "params"}, {"rows"});
  c.expect_only_outputs({"depth", "fraction", "frozen"});
  const at::Tensor rows = c.tensor("in/rows");
  std::vector<int64_t> depths;
  std::vector<double> fractions;
  std::vector<at::Tensor> frozen;
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const auto at = [&](int64_t column) { return rows[row][column].item<double>(); };
    TreeOfLayers model(parts_of(c.text("params")));
    materialise(model, 1);
    const FrozenLayers found = freeze_layers(model, at(0), at(1), at(2));
    depths.push_back(found.depth);
    fractions.push_back(found.fraction);
    std::vector<int64_t> flags;
    for (const auto& one : parameters(model)) flags.push_back(one.parameter->tensor.requires_grad() ? 0 : 1);
    frozen.push_back(at::tensor(flags, at::kLong));
  }
  c.expect_close(at::tensor(depths, at::kLong), "out/depth");
  c.expect_close(at::tensor(fractions, at::kDouble), "out/fraction");
  c.expect_close(at::stack(frozen), "out/frozen");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLayerFreezing,
                         testing::ValuesIn(golden_cases(golden_path(kFreezingFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLayerFreezing);

}  // namespace
}  // namespace tutti
