#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/added_transform.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/tensor_transforms.h"
#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"
#include "tests/runtime/scratch.h"
#include "training/engine/engine.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DatasetPtr of_images(const at::Tensor& images) {
  return std::make_shared<const TensorDataset>(TensorTree::Children{{"input", images}});
}

at::Tensor noisy_bytes() { return at::randint(256, {5, 12, 9, 3}, at::kByte); }

DatasetPtr of_tensors(const at::Tensor& bytes) {
  return std::make_shared<const TransformedDataset>(of_images(bytes),
                                                    Transforms{{"to_tensor", to_tensor_transform()}}, "");
}

std::vector<std::shared_ptr<Algorithm>> both() {
  return {std::make_shared<RandAugment>(), std::make_shared<AugMix>()};
}

TEST(AddedTransforms, ActAtFitStartAlone) {
  for (const auto& algorithm : both()) EXPECT_EQ(events_of(*algorithm), std::set{Event::kFitStart});
}

// The numbers of a sample have the key (seed, name of the algorithm, epoch, sample).
TEST(AddedTransforms, JoinTheTrainingDataBeforeToTensor) {
  const at::Tensor bytes = noisy_bytes();
  State state;
  Logger logger;
  for (const auto& algorithm : both())
    for (int fit = 0; fit < 2; ++fit) algorithm->apply(Event::kFitStart, state, logger);
  const DatasetPtr data = with_transforms(of_tensors(bytes), state.added_transforms);
  const Batch batch = data->get(std::vector<int64_t>{4, 1}, {.seed = 7, .number = 3});
  for (const int64_t row : {0, 1}) {
    const int64_t sample = row == 0 ? 4 : 1;
    at::Tensor image = randaugment_image(bytes[sample], {}, *make_draws(7, {"RandAugment", 3, sample}));
    image = augmix_image(image, {}, *make_draws(7, {"AugMix", 3, sample}));
    EXPECT_TRUE(at::equal(batch["input"][row], to_tensor(image)));
  }
}

void require_on(const DatasetPtr& data) {
  State state;
  state.dataset = data.get();
  const auto algorithm = std::make_shared<RandAugment>();
  algorithm->set_section({Setting::Table(), "algorithms.0", {"r.toml", 1}});
  Logger logger;
  Engine(state, logger, {.algorithms = {algorithm}}).require();
}

std::string refused(const DatasetPtr& data) {
  return message_of<UserError>([&] { require_on(data); });
}

TEST(AddedTransforms, DataThatAreNoSuchImagesAreAnErrorWithTheRecipesLine) {
  const at::Tensor bytes = noisy_bytes(), unit = at::rand({5, 3, 8, 8});
  for (const DatasetPtr& data : {of_images(bytes), of_tensors(bytes), of_images(unit)})
    EXPECT_NO_THROW(require_on(data));
  EXPECT_THAT(refused(of_images(unit * 2)), AllOf(HasSubstr("r.toml:1"), HasSubstr("[0, 1]")));
  EXPECT_THAT(refused(of_images(unit.narrow(1, 0, 2))),
              AllOf(HasSubstr("r.toml:1"), HasSubstr("3 channels")));
  EXPECT_THAT(refused(of_images(at::ones({5, 20}, at::kLong))), HasSubstr("expected images"));
}

TEST(AddedTransforms, ImagesWithMasksAreAnErrorWithTheRecipesLine) {
  const DatasetPtr data = std::make_shared<const TensorDataset>(
      TensorTree::Children{{"input", noisy_bytes()}, {"target", at::ones({5, 12, 9}, at::kLong)}});
  EXPECT_THAT(refused(data),
              AllOf(HasSubstr("r.toml:1"), HasSubstr("RandAugment"), HasSubstr("not those of 'target'")));
}

}  // namespace
}  // namespace tutti
