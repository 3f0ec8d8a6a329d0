#include "models/zoo/resnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/layers/conv.h"

namespace tutti {
namespace {

const Slot& slot_named(Layer& root, const std::string& name) {
  for (const NamedSlot& one : slots(root))
    if (one.name == name) return *one.slot;
  throw std::logic_error("there is no slot " + name);
}

TEST(ResNetTest, OfSmallImagesKeepsTheirSizeInTheStem) {
  ResNet model({.depth = 18, .width = 4, .num_classes = 5, .small_images = true});
  materialise(model, 1);
  at::Tensor stem;
  const auto hook =
      const_cast<Slot&>(slot_named(model, "maxpool")).after([&](const auto&, const TensorTree& out) {
        stem = out.tensor();
        return out.tensor();
      });
  Batch batch;
  batch.set("input", at::randn({2, 3, 32, 32}));
  EXPECT_EQ(model.forward(batch).tensor().sizes(), (Shape{2, 5}));
  EXPECT_EQ(stem.sizes(), (Shape{2, 4, 32, 32}));
  const auto& conv = dynamic_cast<const Conv2d&>(slot_named(model, "conv1").layer()).options();
  EXPECT_EQ(conv.kernel_size, 3);
  EXPECT_EQ(conv.stride, 1);
}

}  // namespace
}  // namespace tutti
