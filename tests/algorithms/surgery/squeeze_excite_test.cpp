#include "algorithms/surgery/squeeze_excite.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

int64_t latent_of(int64_t features, double latent_channels) {
  SqueezeExcite2d layer(features, latent_channels);
  return parameters(layer)[0].parameter->tensor.size(0);
}

TEST(SqueezeExciteTest, LatentChannelsAreANumberOrAPart) {
  EXPECT_EQ(latent_of(24, 5), 5);
  EXPECT_EQ(latent_of(24, 1), 1);
  EXPECT_EQ(latent_of(24, 5.9), 5);
  EXPECT_EQ(latent_of(24, 0.3), 7);
  EXPECT_EQ(latent_of(24, 0.125), 3);
  EXPECT_THAT([] { latent_of(24, 0.04); },
              ThrowsMessage<UserError>(HasSubstr("latent_channels leaves no channel of 24")));
}

TEST(SqueezeExciteTest, InputAndOutputChannelsAreBothEnough) {
  const auto conv = [](int64_t in, int64_t out) {
    return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = in, .out_channels = out});
  };
  Sequential net({conv(8, 16), conv(16, 8), conv(8, 8), conv(16, 16)});
  EXPECT_EQ(apply_squeeze_excite(net, 4, 16), 1);
  EXPECT_EQ(apply_squeeze_excite(net, 4, 9), 0) << "one has been excited already";
  EXPECT_EQ(apply_squeeze_excite(net, 4, 8), 3);
}

TEST(SqueezeExciteTest, ChannelsLastImagesStaySo) {
  SqueezeExcite2d layer(8, 4);
  materialise(layer, 1);
  const at::Tensor images = at::randn({2, 8, 5, 4});
  const at::Tensor plain = layer.forward(images).tensor();
  const at::Tensor last = layer.forward(images.contiguous(at::MemoryFormat::ChannelsLast)).tensor();
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::allclose(last, plain, 1e-5, 1e-6));
}

}  // namespace
}  // namespace tutti
