#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "commands/local_train.h"
#include "io/formats/safetensors.h"
#include "io/hdf5/hdf5_writer.h"
#include "runtime/disk.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/trainer_case.h"

namespace tutti {
namespace {

constexpr const char* kPictures = "interactions.h5";
constexpr const char* kTexts = "interactions_text.h5";

class Interactions : public testing::TestWithParam<std::string> {};

TEST_P(Interactions, TrainAsInComposer) {
  train_here({own_path(kPictures), GetParam()}, Manner::kComposers, 1);
}

// Composer's own resumed runs are no model for all: docs/compat.md.
TEST_P(Interactions, ResumedContinueAsWhole) {
  const GoldenCase c(own_path(kPictures), GetParam());
  if (!c.holds("in/draws")) resume_here(c, Manner::kComposers);  // else the script is at its beginning
}

INSTANTIATE_TEST_SUITE_P(All, Interactions, testing::ValuesIn(golden_cases(own_path(kPictures))),
                         [](const auto& info) { return info.param; });

// A case of text as files that a recipe names.
class TextFiles {
 public:
  explicit TextFiles(const GoldenCase& c) : recipe_(c.text("recipe")) {
    c.expect_only({"classes", "recipe"}, {"eval", "train", "weights"});
    c.expect_only_outputs({"eval_batch", "loss"});
    PosixDisk disk;
    const Hdf5Attributes classes = {{"num_classes", static_cast<int64_t>(c.number("classes"))}};
    std::vector<Hdf5Array> arrays;
    for (const std::string group : {"train", "eval"})
      for (const std::string& name : c.names("in/" + group))
        arrays.push_back(
            hdf5_array(group + "/" + name, c.tensor("in/" + group + "/" + name).contiguous(), classes));
    write_hdf5(disk, folder_.path("data.h5"), arrays);
    Safetensors weights;
    for (const std::string& name : c.names("in/weights"))
      weights.tensors[name] = c.tensor("in/weights/" + name);
    write_safetensors(disk, folder_.path("weights.safetensors"), weights);
    fill_in("{data}", folder_.path("data.h5"));
    fill_in("{weights}", folder_.path("weights.safetensors"));
  }

  const std::string& recipe() const { return recipe_; }
  std::string run() const { return folder_.path("run"); }

 private:
  void fill_in(const std::string& placeholder, const std::string& path) {
    for (size_t at; (at = recipe_.find(placeholder)) != std::string::npos;)
      recipe_.replace(at, placeholder.size(), path);
  }

  Scratch folder_;
  std::string recipe_;
};

class InteractionsOfText : public testing::TestWithParam<std::string> {};

TEST_P(InteractionsOfText, TrainAsInComposer) {
  const GoldenCase c(own_path(kTexts), GetParam());
  const TextFiles files(c);
  LocalRunOptions options;
  options.ranks = 1;
  options.quiet = true;
  options.run_dir = files.run();
  train_in_one_process(recipe_of(files.recipe()), options);
  const auto series = series_of(options.run_dir);
  for (const std::string name : {"loss", "eval_batch"})
    c.expect_close(at::tensor(series.at(name), at::kDouble), "out/" + name);
}

INSTANTIATE_TEST_SUITE_P(All, InteractionsOfText, testing::ValuesIn(golden_cases(own_path(kTexts))),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
