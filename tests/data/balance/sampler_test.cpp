#include "data/balance/sampler.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/balance/class_counts.h"
#include "data/readers/make_dataset.h"
#include "data/readers/synthetic_dataset.h"
#include "data/split/open_split.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 90 samples of class 1, 9 of class 2 and one that does not count; sample i has input i and weight i % 3.
class SamplerOfArrays : public testing::Test {
 protected:
  void SetUp() override {
    at::Tensor target = at::ones(100, at::kLong);
    target.slice(0, 0, 100, 11).fill_(2);
    target[0] = -100;
    PosixDisk disk;
    const at::Tensor numbers = at::arange(100);
    write_hdf5(disk, scratch_.path("t.h5"),
               {hdf5_array("input", numbers.to(at::kFloat).unsqueeze(1)), hdf5_array("target", target),
                hdf5_array("weight", (numbers % 3).to(at::kFloat))});
  }

  Setting recipe(const std::string& keys, const std::string& eval = "") const {
    return resolve_recipe(parse_recipe(
        "seed = 5\n[data.train]\nkind = 'hdf5'\npath = '" + scratch_.path("t.h5") +
            "'\narrays = ['input', 'target']\nfirst_class = 1\nbatch_size = 2\n" + keys + "\n" + eval +
            "\n[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\nlr = "
            "0.1\n[train]\nmax_duration = '1ep'\n",
        "r.toml"));
  }
  DatasetPtr drawn(const std::string& keys, const std::string& eval = "") const {
    const Setting all = recipe(keys, eval);
    const Setting &train = all.at("data").at("train"), &held_out = all.at("data").at("eval");
    const DatasetPtr data = is_split(held_out)
                                ? open_split(train, held_out, nullptr, {.ignore_index = kIgnoredTarget}).train
                                : make_dataset(train);
    return with_sampler(data, train, held_out, kIgnoredTarget);
  }
  std::string why(const std::string& keys) const {
    return message_of<UserError>([&] { drawn(keys); });
  }
  // Of the samples of some epochs.
  static at::Tensor inputs(const Dataset& data, const char* array = "input") {
    std::vector<int64_t> indices;
    for (int64_t epoch = 0; epoch < 20; ++epoch)
      for (int64_t i = 0; i < data.size(); ++i) indices.push_back(data.order(1, epoch, i, true));
    return data.get(indices, {})[array].flatten();
  }

  Scratch scratch_;
};

TEST_F(SamplerOfArrays, BalancedClassesAreEquallyLikely) {
  const DatasetPtr data = drawn("sampler = 'balanced'");
  EXPECT_EQ(data->size(), 100);
  const at::Tensor targets = inputs(*data, "target");
  EXPECT_EQ(targets.lt(0).sum().item<int64_t>(), 0);
  EXPECT_NEAR(targets.eq(1).sum().item<int64_t>(), 1000, 100);
  EXPECT_NEAR(targets.eq(0).sum().item<int64_t>(), 1000, 100);
}

TEST_F(SamplerOfArrays, WeightsAreOfClassesOrOfSamples) {
  const at::Tensor classes = inputs(*drawn("sampler = 'weighted'\nsampler_weights = [1, 0]"), "target");
  EXPECT_EQ(classes.ne(0).sum().item<int64_t>(), 0);
  const at::Tensor rows = inputs(*drawn("sampler = 'weighted'\nsampler_column = 'weight'")).to(at::kLong) % 3;
  EXPECT_EQ(rows.eq(0).sum().item<int64_t>(), 0);
  EXPECT_NEAR(rows.eq(2).sum().item<int64_t>(), 1333, 100);
}

TEST_F(SamplerOfArrays, WeightsOfSamplesAreOfTheTrainingPart) {
  const DatasetPtr data =
      drawn("sampler = 'weighted'\nsampler_column = 'weight'", "[data.eval]\nsplit = 0.3");
  EXPECT_EQ(data->size(), 70);
  EXPECT_EQ((inputs(*data).to(at::kLong) % 3).eq(0).sum().item<int64_t>(), 0);
}

TEST_F(SamplerOfArrays, KeysThatDoNotFitAreRefused) {
  EXPECT_THAT(why("sampler = 'weighted'"), HasSubstr("expected either sampler_weights"));
  EXPECT_THAT(why("sampler = 'weighted'\nsampler_weights = [1, 2, 3]"), HasSubstr("expected 2 weights"));
  EXPECT_THAT(why("sampler = 'weighted'\nsampler_weights = [0, 0]"), HasSubstr("none could be drawn"));
  EXPECT_THAT(why("sampler = 'weighted'\nsampler_weights = [1e308, 1e308]"),
              HasSubstr("too large to be added"));
  EXPECT_THAT(why("sampler = 'weighted'\nsampler_column = 'wieght'"), HasSubstr("data.train.sampler_column"));
  EXPECT_THAT(why("sampler = 'balanced'\nsampler_weights = [1, 2]"),
              HasSubstr("is for sampler = \"weighted\""));
  EXPECT_THAT(why("sampler = 'balenced'"), HasSubstr("balanced"));
}

TEST_F(SamplerOfArrays, ClassesAreCountedAsTheModelNumbersThem) {
  const Setting train = recipe("").at("data").at("train");
  const DatasetPtr data = make_dataset(train);
  const auto known = trained_classes(*data, train, kIgnoredTarget);
  const auto counts = class_counts(known.classes, 3);
  EXPECT_THAT(counts, ElementsAre(90, 9, 0));
  EXPECT_THAT(balanced_weights(counts),
              ElementsAre(99.0 / (2 * 90), 99.0 / (2 * 9), 1));  // sklearn's formula
}

TEST(ClassCounts, PositiveWeightsAreNegativesOverPositives) {
  const TensorDataset labels(TensorTree::Children{
      {"input", at::zeros({4, 1})},
      {"target",
       at::tensor({1.0F, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 0.0F}).view({4, 3})}});
  EXPECT_THAT(balanced_pos_weights(labels), ElementsAre(1.0 / 3, 1, 1));
  const TensorDataset values(
      TensorTree::Children{{"input", at::zeros({2, 1})}, {"target", at::tensor({0.5F, 1.0F})}});
  EXPECT_THAT(balanced_pos_weights(values), testing::IsEmpty());
}

}  // namespace
}  // namespace tutti
