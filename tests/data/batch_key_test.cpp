#include "data/batch_key.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

Batch images_and_labels() {
  return Batch(TensorTree::Children{{"image", at::zeros({2, 3})}, {"label", at::ones({2})}});
}

TEST(BatchKeyTest, FindsAnArrayByNameOrByNumber) {
  const Batch batch = images_and_labels();
  EXPECT_TRUE(BatchKey("label").get(batch).is_same(batch["label"]));
  EXPECT_TRUE(BatchKey(int64_t{0}).get(batch).is_same(batch["image"]));
  EXPECT_TRUE(BatchKey(int64_t{1}).get(batch).is_same(batch["label"]));
}

TEST(BatchKeyTest, ReplacesTheArrayInThisCopyOfTheBatch) {
  const Batch given = images_and_labels();
  for (const BatchKey& key : {BatchKey("label"), BatchKey(int64_t{1})}) {
    Batch batch = given;
    key.set(batch, at::full({2}, 7.0));
    EXPECT_TRUE(at::equal(batch["label"], at::full({2}, 7.0)));
    EXPECT_EQ(batch.children().size(), 2U);
    EXPECT_TRUE(at::equal(given["label"], at::ones({2})));
  }
}

TEST(BatchKeyTest, AMissingKeyIsAnErrorThatNamesThePresentKeys) {
  const Batch batch = images_and_labels();
  const auto error = [&](const BatchKey& key) -> std::string {
    try {
      key.get(batch);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error("target"), "no 'target' in the batch; there is image, label");
  EXPECT_EQ(error(BatchKey(int64_t{2})), "no array number 2 in the batch; there is image, label");
  EXPECT_EQ(error(BatchKey(int64_t{-1})), "no array number -1 in the batch; there is image, label");
}

}  // namespace
}  // namespace tutti
