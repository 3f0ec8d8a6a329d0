#include "job/copied_targets.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/token_transforms.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/make_job.h"
#include "models/zoo/gpt.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGpt =
    "kind = 'gpt'\nvocab_size = 50\nn_positions = 8\nn_embd = 8\nn_head = 1\nn_layer = 1\n";
constexpr const char* kBert =
    "kind = 'bert_mlm'\nvocab_size = 50\nhidden_size = 8\nnum_hidden_layers = 1\nnum_attention_heads = 1\n"
    "intermediate_size = 8\n";
constexpr const char* kNextToken = "[[data.train.transforms]]\nkind = 'next_token'\n";

at::Tensor tokens() { return (at::arange(24 * 8, at::kLong) * 7 % 50).view({24, 8}); }

at::Tensor without(const at::Tensor& labels, int64_t column) {
  at::Tensor some = labels.clone();
  some.select(1, column).fill_(-100);
  return some;
}

class CopiedTargets : public testing::Test {
 protected:
  // Why a job of this model is refused, with such arrays to train on; "" = it is not.
  std::string why(const std::string& model, const std::vector<Hdf5Array>& arrays,
                  const std::string& keys = "", const std::string& more = "") {
    PosixDisk disk;
    const std::string path = folder_.path("data" + std::to_string(++files_) + ".h5");
    write_hdf5(disk, path, arrays);
    const std::string recipe = "[data.train]\nkind = 'hdf5'\n" + keys + "path = '" + path +
                               "'\nbatch_size = 8\n" + more + "[model]\n" + model +
                               "[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n";
    try {
      make_job(recipe_of(recipe), {.run_dir = folder_.path("run")});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string why(const std::string& model, const at::Tensor& target, const std::string& more = "") {
    return why(model, {hdf5_array("input", tokens()), hdf5_array("target", target)}, "", more);
  }

  Scratch folder_;
  int files_ = 0;
};

TEST_F(CopiedTargets, OfAGptAreRefusedWithTheLine) {
  EXPECT_THAT(
      why(kGpt, tokens()),
      AllOf(StartsWith("test.toml:2: data.train.kind = \"hdf5\": each target in 'target' is the token"),
            HasSubstr("the transform next_token shifts targets")));
  EXPECT_THAT(why(kGpt, without(tokens(), 3)), HasSubstr("learns to copy"));
  const std::vector<Hdf5Array> of_hugging_face = {hdf5_array("input_ids", tokens()),
                                                  hdf5_array("labels", without(tokens(), 7))};
  EXPECT_THAT(why(kGpt, of_hugging_face, "arrays = { input = 'input_ids', target = 'labels' }\n"),
              StartsWith("test.toml:3: [data.train.arrays]: each target"));
}

TEST_F(CopiedTargets, ShiftedTargetsAreAccepted) {
  EXPECT_EQ(why(kGpt, tokens(), kNextToken), "");
  EXPECT_EQ(why(kGpt, at::roll(tokens(), -1, 1)), "");
  const at::Tensor alike = at::full({24, 8}, 3, at::kLong);
  EXPECT_EQ(why(kGpt, {hdf5_array("input", alike), hdf5_array("target", alike)}), "");
}

at::Tensor next_tokens() { return at::cat({tokens().narrow(1, 1, 7), at::full({24, 1}, 49, at::kLong)}, 1); }

TEST_F(CopiedTargets, TargetsThatAreNextTokensAreNotShiftedAgain) {
  for (const at::Tensor& target : {next_tokens(), without(next_tokens(), 3)})
    EXPECT_THAT(
        why(kGpt, target, kNextToken),
        AllOf(StartsWith("test.toml:6: data.train.transforms.0.kind = \"next_token\": each target would be"),
              HasSubstr("leave next_token out")));
  EXPECT_EQ(why(kGpt, next_tokens()), "");
  const at::Tensor alike = at::full({24, 8}, 3, at::kLong);
  EXPECT_EQ(why(kGpt, {hdf5_array("input", alike), hdf5_array("target", alike)}, "", kNextToken), "");
  EXPECT_EQ(why(kGpt, at::full({24, 8}, -100, at::kLong), kNextToken), "") << "none counts";
}

TEST_F(CopiedTargets, OfEvaluationDataAreRefusedToo) {
  const std::string path = folder_.path("eval.h5");
  PosixDisk disk;
  write_hdf5(disk, path, {hdf5_array("input", tokens()), hdf5_array("target", tokens())});
  EXPECT_THAT(
      why(kGpt, tokens(), std::string(kNextToken) + "[data.eval]\nkind = 'hdf5'\npath = '" + path + "'\n"),
      StartsWith("test.toml:8: data.eval.kind = "));
}

TEST_F(CopiedTargets, OfMaskedTokensAreFew) {
  const std::vector<Hdf5Array> all = {hdf5_array("input_ids", tokens()), hdf5_array("labels", tokens())};
  EXPECT_THAT(why(kBert, all), HasSubstr("mask_tokens"));
  const at::Tensor few = at::full_like(tokens(), -100);
  few.select(1, 2).copy_(tokens().select(1, 2));
  EXPECT_EQ(why(kBert, {hdf5_array("input_ids", tokens()), hdf5_array("labels", few)}), "");
}

// transformers' ForCausalLMLoss: scores without the last against labels without the first.
TEST(NextTokens, HaveTheLossOfHuggingFacesModels) {
  Gpt model({.vocab_size = 50, .n_positions = 8, .n_embd = 8, .n_layer = 1, .n_head = 2});
  materialise(model, 1);
  const ForwardContext evaluating{.training = false};
  set_context(model, &evaluating);
  const at::Tensor labels = without(tokens(), 3);
  labels[5].fill_(-100);
  Batch batch = TensorTree::Children{{"input", tokens()}, {"target", labels}};
  next_token_transform()->apply(batch, {});
  const Outputs outputs = model.forward(batch);
  const at::Tensor expected =
      at::cross_entropy_loss(outputs.tensor().narrow(1, 0, 7).reshape({-1, 50}),
                             labels.narrow(1, 1, 7).reshape(-1), {}, at::Reduction::Mean, -100);
  EXPECT_TRUE(at::allclose(model.loss(outputs, batch), expected)) << expected;
  EXPECT_EQ(model.loss_weight(batch), 23 * 6) << "of 24 rows one, and of 7 targets one, do not count";
  const Batch parts[] = {batch.narrow(0, 10), batch.narrow(10, 14)};
  at::Tensor sum = at::zeros({});
  for (const Batch& part : parts)
    sum = sum + model.loss(model.forward(part), part) * static_cast<double>(model.loss_weight(part));
  EXPECT_TRUE(at::allclose(sum / (23 * 6), expected)) << "microbatches, weighed by what counts";
}

}  // namespace
}  // namespace tutti
