#include <gtest/gtest.h>

#include <cmath>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "training/precision.h"
#include "training/settings.h"

namespace tutti {
namespace {

LossScaling scaling(const std::string& keys) {
  const std::vector<Catalog> catalogs = {train_catalog(), section_catalog<PrecisionSettings>()};
  const std::string recipe = "[train]\nmax_duration = '1ep'\n[precision]\n" + keys;
  return Precision::read(resolve(parse_recipe(recipe, "test.toml"), catalogs)).loss_scaling;
}

GradScaler scaler(const std::string& keys) { return GradScaler(scaling(keys)); }

struct Step {
  bool overflowed;
  double scale;
  int64_t tracker;
};

// The steps are those of torch.amp.GradScaler (PyTorch 2.11).
void expect(GradScaler scaler, const std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    scaler.update(steps[i].overflowed);
    EXPECT_EQ(scaler.scale(), steps[i].scale) << "step " << i;
    EXPECT_EQ(scaler.state().growth_tracker, steps[i].tracker) << "step " << i;
  }
}

TEST(GradScalerTest, GrowsAndBacksOffAsTorchs) {
  expect(scaler("growth_interval = 3"), {{false, 65536, 1},
                                         {false, 65536, 2},
                                         {false, 131072, 0},
                                         {true, 65536, 0},
                                         {false, 65536, 1},
                                         {false, 65536, 2},
                                         {false, 131072, 0},
                                         {false, 131072, 1},
                                         {true, 65536, 0},
                                         {true, 32768, 0},
                                         {false, 32768, 1},
                                         {false, 32768, 2},
                                         {false, 65536, 0}});
}

TEST(GradScalerTest, RoundsToFloat32AsTorchs) {
  expect(scaler("init_scale = 1000\ngrowth_factor = 1.7\nbackoff_factor = 0.3\ngrowth_interval = 2"),
         {{false, 1000, 1},
          {false, 1700, 0},
          {false, 1700, 1},
          {true, 510, 0},
          {false, 510, 1},
          {false, 867, 0},
          {false, 867, 1},
          {false, 1473.9000244140625, 0},
          {true, 442.1700134277344, 0},
          {true, 132.6510009765625, 0},
          {false, 132.6510009765625, 1},
          {false, 225.50669860839844, 0},
          {false, 225.50669860839844, 1}});
}

TEST(GradScalerTest, DefaultsAreTorchs) {
  const LossScaling defaults = scaling("");
  EXPECT_EQ(defaults.init_scale, 65536);
  EXPECT_EQ(defaults.growth_factor, 2);
  EXPECT_EQ(defaults.backoff_factor, 0.5);
  EXPECT_EQ(defaults.growth_interval, 2000);
}

TEST(GradScalerTest, DoesNotGrowIntoInfinity) {
  GradScaler grows = scaler("init_scale = 1e30\ngrowth_factor = 1e6\ngrowth_interval = 1");
  const double most = static_cast<float>(static_cast<float>(1e30) * 1e6);
  for (int step = 0; step < 3; ++step) grows.update(false);
  EXPECT_EQ(grows.scale(), most);
}

TEST(GradScalerTest, DoesNotShrinkToNothing) {
  GradScaler shrinks = scaler("backoff_factor = 1e-6");
  for (int step = 0; step < 100; ++step) shrinks.update(true);
  EXPECT_GT(shrinks.scale(), 0);
  EXPECT_TRUE(std::isnormal(static_cast<float>(shrinks.scale())));
}

TEST(GradScalerTest, LossesOfManySamplesAreScaledToTheSizeOfOneMean) {
  GradScaler scales = scaler("");
  for (const auto& [weight, scale] : std::vector<std::pair<double, double>>{
           {1, 65536}, {32, 2048}, {33, 2048}, {63, 2048}, {64, 1024}, {0.5, 131072}}) {
    scales.set_usual_weight(weight);
    EXPECT_EQ(scales.loss_scale(), scale) << weight;
  }
}

TEST(GradScalerTest, ResumesFromWhatIsSaved) {
  GradScaler one = scaler("growth_interval = 3"), other = scaler("growth_interval = 3");
  one.set_usual_weight(24);
  one.update(true);
  one.update(false);
  other.restore(one.state());
  for (const bool overflowed : {false, false, true}) {
    one.update(overflowed);
    other.update(overflowed);
    EXPECT_EQ(other.state(), one.state());
  }
  other.restore({});
  EXPECT_EQ(other.state(), one.state()) << "a run that did not scale has no state to resume from";
}

}  // namespace
}  // namespace tutti
