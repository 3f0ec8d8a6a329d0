#include "tensors/tree.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TensorTree nested() {
  return TensorTree::Children{
      {"input", at::arange(6).view({3, 2})},
      {"masks", TensorTree::Children{{"left", at::arange(3)}, {"right", at::arange(3) + 10}}}};
}

TEST(TensorTree, IsEmptyByDefault) {
  EXPECT_TRUE(TensorTree().empty());
  EXPECT_FALSE(TensorTree().is_leaf());
  EXPECT_EQ(TensorTree().samples(), 0);
}

TEST(TensorTree, OfOneTensorSharesIt) {
  const at::Tensor tensor = at::zeros({2});
  const TensorTree tree = tensor;
  EXPECT_TRUE(tree.is_leaf());
  EXPECT_TRUE(tree.tensor().is_same(tensor));
}

TEST(TensorTree, ListNamesItsItemsByPosition) {
  const TensorTree pair = TensorTree::list({at::zeros({4}), at::ones({4})});
  EXPECT_TRUE(pair["1"].equal(at::ones({4})));
  EXPECT_EQ(pair.find("2"), nullptr);
}

TEST(TensorTree, DottedPathReachesIn) {
  const TensorTree tree = nested();
  EXPECT_TRUE(tree["masks.right"].equal(at::arange(3) + 10));
  EXPECT_EQ(tree.find("masks.middle"), nullptr);
  EXPECT_EQ(tree.find("mask"), nullptr);
  EXPECT_EQ(tree.find("masks:right"), nullptr);
}

TEST(TensorTree, NameWithADotIsFoundAsItIs) {
  const TensorTree tree = TensorTree::Children{{"a", at::zeros({1})}, {"a.b", at::ones({1})}};
  EXPECT_TRUE(tree["a.b"].equal(at::ones({1})));
}

TEST(TensorTree, MissingNameIsAUserErrorThatListsTheNames) {
  EXPECT_THAT([] { nested().at("label"); }, ThrowsMessage<UserError>(HasSubstr("'label'")));
  EXPECT_THAT([] { nested().at("label"); }, ThrowsMessage<UserError>(HasSubstr("input, masks")));
}

TEST(TensorTree, SeveralTensorsAreNotOneAndAreListed) {
  EXPECT_THAT([] { nested().tensor(); },
              ThrowsMessage<UserError>(HasSubstr("there are several: input, masks")));
}

TEST(SampleSpec, AMissingArrayIsAUserErrorThatListsTheNames) {
  const SampleSpec samples{.shapes = {{"tokens", {4}}, {"labels", {}}}};
  EXPECT_EQ(samples.shapes.at("tokens"), Shape{4});
  const std::string why = "no array 'input' in the samples; there is labels, tokens";
  EXPECT_THAT([&] { samples.shapes.at("input"); }, ThrowsMessage<UserError>(why));
  EXPECT_THAT([&] { samples.describe("input"); }, ThrowsMessage<UserError>(why));
  EXPECT_THAT([&] { samples.dtypes.at("input"); },
              ThrowsMessage<UserError>("no array 'input' in the samples; there is nothing"));
}

TEST(TensorTree, SetReplacesOrAppends) {
  TensorTree tree = nested();
  tree.set("input", at::zeros({3}));
  tree.set("target", at::ones({3}));
  EXPECT_EQ(tree.children().size(), 3U);
  EXPECT_TRUE(tree["input"].equal(at::zeros({3})));
  EXPECT_EQ(tree.children().back().first, "target");
}

TEST(TensorTree, LeavesComeDepthFirstWithTheirPaths) {
  std::vector<std::string> paths;
  for (const auto& [path, leaf] : nested().leaves()) paths.push_back(path);
  EXPECT_THAT(paths, testing::ElementsAre("input", "masks.left", "masks.right"));
}

TEST(TensorTree, MapKeepsTheShapeOfTheTree) {
  const TensorTree doubled = nested().map([](const at::Tensor& t) { return t * 2; });
  EXPECT_TRUE(doubled["masks.left"].equal(at::arange(3) * 2));
  EXPECT_EQ(doubled.leaves().size(), 3U);
}

TEST(TensorTree, NarrowTakesSamplesOfEveryLeafAsViews) {
  const TensorTree tree = nested();
  const TensorTree part = tree.narrow(1, 2);
  EXPECT_EQ(part.samples(), 2);
  EXPECT_TRUE(part["masks.right"].equal(at::arange(11, 13)));
  EXPECT_TRUE(part["input"].is_alias_of(tree["input"]));
}

}  // namespace
}  // namespace tutti
