#include "data/mixture.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/readers/synthetic_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Sample i of `size` is i + `base`.
DatasetPtr numbers(int64_t size, int64_t base, int64_t width = 1) {
  const at::Tensor values = (at::arange(size).unsqueeze(1) + base).repeat({1, width}).to(at::kFloat);
  return std::make_shared<const TensorDataset>(TensorTree::Children{{"input", values}}, 0);
}

std::vector<int64_t> epoch_of(const Mixture& mixture, int64_t epoch, bool shuffle = true) {
  std::vector<int64_t> indices;
  for (int64_t position = 0; position < mixture.size(); ++position)
    indices.push_back(mixture.order(7, epoch, position, shuffle));
  return indices;
}

std::vector<int64_t> values_of(const Mixture& mixture, const std::vector<int64_t>& indices) {
  const at::Tensor values = mixture.get(indices, {})["input"].flatten().to(at::kLong).contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}

TEST(MixtureTest, AnEpochHasItsNumberOfSamplesOfEach) {
  const Mixture mixture({{"a", numbers(10, 0), 4}, {"b", numbers(3, 100), 7}});
  EXPECT_EQ(mixture.size(), 11);
  std::map<int64_t, int> times;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    int from_b = 0;
    for (const int64_t value : values_of(mixture, epoch_of(mixture, epoch))) {
      ++times[value];
      from_b += value >= 100;
    }
    EXPECT_EQ(from_b, 7);
  }
  for (int64_t a = 0; a < 10; ++a) EXPECT_EQ(times[a], 2) << "5 epochs of 4 are 2 times all 10";
  for (int64_t b = 100; b < 103; ++b) EXPECT_EQ(times[b], std::clamp(times[b], 11, 12)) << "35 of 3";
}

TEST(MixtureTest, TheOrderIsOfSeedAndEpoch) {
  const Mixture mixture({{"a", numbers(50, 0), 50}, {"b", numbers(50, 100), 50}});
  EXPECT_EQ(epoch_of(mixture, 1), epoch_of(mixture, 1));
  EXPECT_NE(epoch_of(mixture, 0), epoch_of(mixture, 1));
  const std::vector<int64_t> in_order = epoch_of(mixture, 0, false);
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  const std::vector<int64_t> asked = {99, 0, 50, 49, 0};
  EXPECT_EQ(values_of(mixture, asked), (std::vector<int64_t>{149, 0, 100, 49, 0}));
  EXPECT_EQ(mixture.get({}, {})["input"].sizes(), (at::IntArrayRef{0, 1}));
}

TEST(MixtureTest, SourcesMustBeAlike) {
  EXPECT_THAT(message_of<UserError>([] {
                Mixture({{"a", numbers(3, 0), 3}, {"b", numbers(3, 0, 2), 3}});
              }),
              HasSubstr("b: 'input' is float32 [2], and float32 [1] elsewhere"));
}

std::string recipe_of(const std::string& first, const std::string& second, const std::string& keys = "") {
  const std::string source =
      "[[data.train.sources]]\nkind = 'synthetic'\ntargets = 'sequence'\nshape = [8]\n";
  return "[data.train]\nkind = 'mixture'\nbatch_size = 1\n" + keys + source + "samples = 30\n" + first +
         "\n" + source + "samples = 10\n" + second + "\n";
}

DatasetPtr made(const std::string& recipe) {
  const Catalog catalog = train_data_catalog();
  return make_dataset(resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train"));
}

TEST(MixtureTest, ARecipeSaysHowMuchOfEach) {
  EXPECT_EQ(made(recipe_of("", ""))->size(), 40) << "all of each";
  EXPECT_EQ(made(recipe_of("weight = 1", "weight = 3"))->size(), 40);
  EXPECT_EQ(made(recipe_of("weight = 1", "weight = 3", "samples = 100\n"))->size(), 100);
  const auto why = [](const std::string& recipe) { return message_of<UserError>([&] { made(recipe); }); };
  EXPECT_THAT(why(recipe_of("weight = 1", "")), HasSubstr("the other sources have weights"));
  EXPECT_THAT(why(recipe_of("weight = 1", "weight = 1e-9")), HasSubstr("it gives no sample to an epoch"));
  EXPECT_THAT(why(recipe_of("", "", "samples = 100\n")), HasSubstr("the sources have no weights"));
  EXPECT_THAT(why(recipe_of("tokens = 800", "")), HasSubstr("have no sequence_length"));
  EXPECT_THAT(why(recipe_of("weight = 1\ntokens = 800", "weight = 1")), HasSubstr("tokens"));
}

}  // namespace
}  // namespace tutti
