#include "models/layers/layer_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;

// Passes its input on to the layer in its slot, whose name is given.
class Outer final : public Layer {
 public:
  Outer(const std::string& name, std::shared_ptr<Layer> inner) : inner_(add_slot(name, std::move(inner))) {}
  TensorTree forward(const TensorTree& input) override { return inner_(input); }
  const char* kind() const override { return "Outer"; }
  Slot& inner() const { return inner_; }

 private:
  Slot& inner_;
};

class Throwing final : public Layer {
 public:
  explicit Throwing(std::function<void()> raise) : raise_(std::move(raise)) {}
  TensorTree forward(const TensorTree& input) override {
    raise_();
    return input;
  }
  const char* kind() const override { return "Throwing"; }

 private:
  std::function<void()> raise_;
};

std::string layer_error_of(Layer& root, const at::Tensor& input) try {
  root.forward(input);
  return "";
} catch (const LayerError& error) {
  return error.what();
}

// The error of a layer in the slot "block" of a layer in the slot "body".
std::string layer_error_of(const std::function<void()>& raise) {
  Outer root("body", std::make_shared<Outer>("block", std::make_shared<Throwing>(raise)));
  return layer_error_of(root, at::ones({2}));
}

template <class Error>
void expect_unchanged(const std::function<void()>& raise) {
  Outer root("body", std::make_shared<Outer>("block", std::make_shared<Throwing>(raise)));
  try {
    root.forward(at::ones({2}));
    ADD_FAILURE() << "no error";
  } catch (const std::exception& error) {
    EXPECT_EQ(typeid(error), typeid(Error)) << error.what();
  }
}

std::string error_in_layer(std::shared_ptr<Layer> layer, const at::Tensor& input) {
  Outer root("one", std::move(layer));
  materialise(root, 1);
  return layer_error_of(root, input);
}

TEST(LayerErrorTest, NamesTheInnermostLayerAndItsSizesOnOneLine) {
  Outer root("body", std::make_shared<Outer>("head", std::make_shared<Linear>(24, 3)));
  materialise(root, 1);
  EXPECT_EQ(layer_error_of(root, at::ones({12, 48})),
            "in body.head (Linear 24 -> 3): mat1 and mat2 shapes cannot be multiplied (12x48 and 24x3)");
}

TEST(LayerErrorTest, OmitsSlotsWithoutName) {
  Outer root("body", std::make_shared<Outer>("", std::make_shared<Linear>(24, 3)));
  materialise(root, 1);
  EXPECT_THAT(layer_error_of(root, at::ones({12, 48})), HasSubstr("in body (Linear 24 -> 3): "));
}

TEST(LayerErrorTest, HasTheSizesOfALayersWeight) {
  const at::Tensor numbers = at::ones({2, 5});
  EXPECT_THAT(error_in_layer(std::make_shared<Conv1D>(4, 3), numbers), HasSubstr("in one (Conv1D 4 -> 3): "));
  EXPECT_THAT(error_in_layer(std::make_shared<Embedding>(7, 3), numbers),
              HasSubstr("in one (Embedding with weight [7, 3]): "));
  EXPECT_THAT(error_in_layer(std::make_shared<LayerNorm>(4), numbers),
              HasSubstr("in one (LayerNorm with weight [4]): "));
  const Conv2dOptions conv{.in_channels = 3, .out_channels = 8, .kernel_size = 3};
  EXPECT_THAT(error_in_layer(std::make_shared<Conv2d>(conv), at::ones({1, 2, 9, 9})),
              HasSubstr("in one (Conv2d with weight [8, 3, 3, 3]): "));
}

TEST(LayerErrorTest, OfALayerWhoseWeightHasNoSizesNamesTheLayer) {
  auto linear = std::make_shared<Linear>(2, 2);
  linear->weight().tensor = at::ones({2});
  Outer root("one", linear);
  EXPECT_THAT(layer_error_of(root, at::ones({2, 3})), HasSubstr("in one (Linear): "));
}

TEST(LayerErrorTest, IsOfAModelsOwnErrorsToo) {
  EXPECT_EQ(layer_error_of([] { throw UserError("the mask lacks rows"); }),
            "in body.block (Throwing): the mask lacks rows");
  EXPECT_EQ(layer_error_of([] { throw std::runtime_error("no rows"); }), "in body.block (Throwing): no rows");
  EXPECT_THAT(layer_error_of([] { std::map<int, int>().at(3); }), HasSubstr("in body.block (Throwing): "));
}

TEST(LayerErrorTest, HasNoBacktrace) {
  const std::string text = layer_error_of([] { TORCH_CHECK(false, "first\nsecond"); });
  EXPECT_EQ(text, "in body.block (Throwing): first second");
}

TEST(LayerErrorTest, KeepsThePlaceInTheRecipe) {
  EXPECT_EQ(layer_error_of([] { throw UserError(Position{.file = "r.toml", .line = 3}, "x = 1: too low"); }),
            "r.toml:3: in body.block (Throwing): x = 1: too low");
}

TEST(LayerErrorTest, IsNotALackOfMemoryNorAnErrorThatIsHandledByItsType) {
  expect_unchanged<c10::OutOfMemoryError>([] { throw c10::OutOfMemoryError({}, "no memory"); });
  expect_unchanged<std::bad_alloc>([] { throw std::bad_alloc(); });
  expect_unchanged<std::runtime_error>([] { throw std::runtime_error("cannot allocate memory"); });
  expect_unchanged<OperatingError>([] { throw OperatingError("a rank is lost"); });
  expect_unchanged<UserError>([] { throw UserError("all agree", EndKind::kRefused); });
  expect_unchanged<AgreedOutOfMemory>(
      [] { throw AgreedOutOfMemory(EndKind::kOutOfMemoryInStep, "out of memory"); });
}

TEST(LayerErrorTest, LeavesErrorsThatNameTheirPlaceAsTheyAre) {
  EXPECT_EQ(layer_error_of([] { throw LayerError("aten.linear.default in 'head': no"); }),
            "aten.linear.default in 'head': no");
}

TEST(LayerErrorTest, OfAHookHasTheLayersAround) {
  auto block = std::make_shared<Outer>("block", std::make_shared<Linear>(2, 2));
  const auto hook = block->inner().before([](const TensorTree&) { throw UserError("too long"); });
  Outer root("body", block);
  EXPECT_EQ(layer_error_of(root, at::ones({2, 2})), "in body (Outer): too long");
}

}  // namespace
}  // namespace tutti
