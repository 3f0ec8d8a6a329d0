#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/check.h"
#include "commands/local_train.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string with_shapes(const std::string& model, const std::string& trained, const std::string& evaluated,
                        const std::string& more = "") {
  const std::string targets = model.find("gpt") == model.npos ? "" : "targets = 'sequence'\n";
  const std::string data = "kind = 'synthetic'\nsamples = 8\nbatch_size = 4\n" + targets + "shape = ";
  return "seed = 1\n[data.eval]\n" + data + evaluated + "\n[data.train]\n" + data + trained + "\n[model]\n" +
         model + "\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ep'\n" + more;
}

// The error of `check`, which must equal that of a training on two ranks; "" if both accept the recipe.
std::string why_shapes_are_refused(const std::string& text) {
  std::string checked, trained;
  const Scratch folder;
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  options.quiet = true;
  try {
    check_text(recipe_of(text), {});
  } catch (const UserError& error) {
    checked = error.what();
  }
  try {
    train_in_one_process(recipe_of(text), options);
    EXPECT_THAT(read_text(options.run_dir + "/metrics.jsonl"), HasSubstr("metrics/eval/loss"));
  } catch (const UserError& error) {
    trained = error.what();
  }
  EXPECT_EQ(trained, checked);
  return checked;
}

const std::string kPoolingNet =
    "kind = 'sequential'\nlayers = ['Conv2d(1, 4, kernel_size=3)', 'AdaptiveAvgPool2d(output_size=1)', "
    "'Flatten()', 'Linear(4, 10)']";
const std::string kSmallGpt = "kind = 'gpt'\nn_embd = 8\nn_layer = 1\nn_head = 1\nn_positions = 16";

TEST(EvaluationShapes, AreThoseThatTheModelTakes) {
  EXPECT_EQ(why_shapes_are_refused(with_shapes(kPoolingNet, "[1, 8, 8]", "[1, 12, 10]")), "");
  EXPECT_EQ(why_shapes_are_refused(with_shapes(kSmallGpt, "[8]", "[16]")), "");
  EXPECT_EQ(why_shapes_are_refused(with_shapes(kSmallGpt, "[8]", "[5]")), "");
}

TEST(EvaluationShapes, UnfitShapesAreRefusedByTheirLine) {
  EXPECT_THAT(why_shapes_are_refused(with_shapes("kind = 'mlp'", "[1, 8, 8]", "[1, 12, 10]")),
              StartsWith("test.toml:6: data.eval.shape = [1, 12, 10]: expected samples as in [data.train], "
                         "whose 'input' is float32 [1, 8, 8]; here it is float32 [1, 12, 10], and the model "
                         "rejects such a batch: "));
  EXPECT_THAT(why_shapes_are_refused(with_shapes(kPoolingNet, "[1, 8, 8]", "[1, 2, 2]")),
              HasSubstr("test.toml:6: "));
  EXPECT_THAT(why_shapes_are_refused(with_shapes(kSmallGpt, "[8]", "[17]")),
              AllOf(StartsWith("test.toml:7: data.eval.shape = [17]: "),
                    HasSubstr("here it is int64 [17], and the model takes at most 16 tokens")));
}

// Surgery decides how long sequences may be.
TEST(EvaluationShapes, AreTriedOnTheModelAfterSurgery) {
  EXPECT_EQ(why_shapes_are_refused(with_shapes(kSmallGpt, "[8]", "[32]",
                                               "[[algorithms]]\nkind = 'alibi'\nmax_sequence_length = 32\n")),
            "");
}

}  // namespace
}  // namespace tutti
