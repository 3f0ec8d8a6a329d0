#include "training/callbacks/samples/image_visualizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Pictures final : Logger {
  std::vector<LoggedImages> all;
  void log_images(const LoggedImages& images) override { all.push_back(images); }
};

class ImageVisualizerTest : public CallbackTest {
 protected:
  ImageVisualizerTest() { give(at::ones({4, 3, 2, 2}), at::zeros({4}, at::kLong)); }

  void give(const at::Tensor& input, const at::Tensor& target) {
    state_.batch = TensorTree::Children{{"input", input}, {"target", target}};
  }
  static ImageVisualizer::Options options() {
    ImageVisualizer::Options options;
    options.input_key = Setting(std::string("input"), "callbacks.0.input_key", {"test.toml", 7});
    options.target_key = Setting(std::string("target"), "callbacks.0.target_key", {"test.toml", 8});
    return options;
  }
  static std::unique_ptr<ImageVisualizer> made(const char* interval,
                                               const ImageVisualizer::Options& how = options()) {
    return std::make_unique<ImageVisualizer>(Time::parse(std::string_view(interval)), how);
  }
  // One microbatch's events but for the last ones of the step.
  void microbatch(Callback& callback) {
    for (const Event event : {Event::kBeforeForward, Event::kAfterForward, Event::kBeforeLoss})
      tell(callback, event);
  }
  void attempt(Callback& callback, int microbatches = 1) {
    tell(callback, Event::kAfterDataloader);
    for (int m = 0; m < microbatches; ++m) microbatch(callback);
  }
  void end(Callback& callback) {
    tell(callback, Event::kAfterTrainBatch);
    state_.to_next_batch(32, 0, 1.0);
    tell(callback, Event::kBatchEnd);
    if (state_.timestamp.batch_in_epoch < state_.dataloader_len) return;
    state_.timestamp.to_next_epoch();
    tell(callback, Event::kEpochEnd);
  }
  void tell(Callback& callback, Event event) { callback.run_event(event, state_, pictures_); }
  // Before which of so many batches there were images.
  std::vector<int64_t> batches(Callback& callback, int count) {
    std::vector<int64_t> found;
    tell(callback, Event::kFitStart);
    for (int i = 0; i < count; ++i) {
      const std::size_t before = pictures_.all.size();
      attempt(callback);
      if (pictures_.all.size() > before) found.push_back(state_.timestamp.batch);
      end(callback);
    }
    return found;
  }
  void evaluate(Callback& callback, int count) {
    tell(callback, Event::kEvalStart);
    for (int i = 0; i < count; ++i)
      for (const Event event : {Event::kEvalBatchStart, Event::kEvalBeforeForward, Event::kEvalAfterForward})
        tell(callback, event);
    tell(callback, Event::kEvalEnd);
  }
  std::string why_refused(const ImageVisualizer::Options& how) {
    try {
      attempt(*made("1ba", how));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  Pictures pictures_;
};

TEST_F(ImageVisualizerTest, LogsTheFirstBatchAndThoseAfterItsInterval) {
  EXPECT_THAT(batches(*made("4ba"), 10), ElementsAre(0, 4, 8));
  EXPECT_THAT(pictures_.all, Each(testing::Field(&LoggedImages::name, "Images/Train")));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("1ep"), 25), ElementsAre(0, 10, 20));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("2ep"), 25), ElementsAre(0, 20));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("100sp"), 8), ElementsAre(0, 4, 7));
}

TEST_F(ImageVisualizerTest, LogsSoManyImagesOfTheFirstMicrobatch) {
  auto three = options();
  three.num_images = 3;
  attempt(*made("1ba", three), /*microbatches=*/2);
  ASSERT_THAT(pictures_.all, SizeIs(1));
  const LoggedImages& found = pictures_.all[0];
  EXPECT_THAT((std::vector{found.count, found.height, found.width, found.channels}), ElementsAre(3, 2, 2, 3));
  EXPECT_THAT(found.pixels, AllOf(SizeIs(36), Each(255)));
  EXPECT_THAT(found.masks, IsEmpty());
  attempt(*made("1ba"));
  EXPECT_EQ(pictures_.all.at(1).count, 4) << "all that there are";
}

TEST_F(ImageVisualizerTest, AnAttemptThatIsDoneAgainLogsAgain) {
  const auto visualizer = made("100ba");
  attempt(*visualizer);
  attempt(*visualizer);
  EXPECT_THAT(pictures_.all, SizeIs(2)) << "what the void one logged is forgotten";
  microbatch(*visualizer);  // of a closure's second pass
  EXPECT_THAT(pictures_.all, SizeIs(2));
  end(*visualizer);
  attempt(*visualizer);
  EXPECT_THAT(pictures_.all, SizeIs(2));
}

TEST_F(ImageVisualizerTest, LogsTheFirstBatchOfEachEvaluation) {
  const auto visualizer = made("100ba");
  for (int i = 0; i < 2; ++i) evaluate(*visualizer, 3);
  EXPECT_THAT(pictures_.all, SizeIs(2));
  EXPECT_THAT(pictures_.all, Each(testing::Field(&LoggedImages::name, "Images/Eval")));
  give(at::zeros({4, 64}), at::zeros({4}, at::kLong));
  EXPECT_NO_THROW(evaluate(*visualizer, 1)) << "another evaluator's data are no images";
  EXPECT_THAT(pictures_.all, SizeIs(2));
}

TEST_F(ImageVisualizerTest, ARunThatResumesLogsTheSameBatches) {
  const auto first = made("3ba");
  EXPECT_THAT(batches(*first, 3), ElementsAre(0));
  const auto second = made("3ba");
  second->restore(first->state());
  EXPECT_THAT(batches(*second, 5), ElementsAre(3, 6));
  const auto third = made("3ba");
  third->restore(second->state());
  EXPECT_THAT(batches(*third, 2), ElementsAre(9));
}

class Segmenting : public ImageVisualizerTest {
 protected:
  Segmenting() {
    options_.segmentation = true;
    give(at::ones({2, 1, 1, 2}), at::tensor({1, -1, 0, 0}, at::kLong).view({2, 1, 2}));
    state_.outputs = at::tensor({0.0, 1.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.5}).view({2, 2, 1, 2});
  }
  ImageVisualizer::Options options_ = options();
};

TEST_F(Segmenting, LogsWhatThePixelsAreTakenForAndWhatTheyAre) {
  attempt(*made("1ba", options_));
  evaluate(*made("1ba", options_), 2);
  ASSERT_THAT(pictures_.all, SizeIs(2));
  EXPECT_EQ(pictures_.all[0].name, "Images/Train");
  EXPECT_EQ(pictures_.all[1].name, "Images/Eval");
  for (const auto& images : pictures_.all) {
    ASSERT_THAT(images.masks, SizeIs(2));
    EXPECT_EQ(images.masks[0].name, "prediction");
    EXPECT_THAT(images.masks[0].classes, ElementsAre(1, 0, 0, 1));
    EXPECT_EQ(images.masks[1].name, "ground_truth");
    EXPECT_THAT(images.masks[1].classes, ElementsAre(1, 2, 0, 0)) << "what is below 0 is one class more";
  }
}

TEST_F(Segmenting, TargetsMayBePartsOfEachClass) {
  give(at::ones({2, 1, 1, 2}), -state_.outputs.tensor());
  attempt(*made("1ba", options_));
  EXPECT_THAT(pictures_.all.at(0).masks.at(1).classes, ElementsAre(0, 1, 1, 0));
}

TEST_F(Segmenting, OutputsThatAreNoScoresOfPixelsAreAnError) {
  state_.outputs = at::zeros({2, 10});
  EXPECT_THAT(why_refused(options_),
              AllOf(HasSubstr("test.toml:8: callbacks.0.target_key = \"target\": expected classes [N, H, W]"),
                    HasSubstr("outputs are: Float [2, 10]")));
}

TEST_F(ImageVisualizerTest, BatchesWithoutImagesAreAnErrorThatNamesTheKey) {
  auto of_pictures = options();
  of_pictures.input_key.value = std::string("picture");
  EXPECT_THAT(why_refused(of_pictures), HasSubstr("input Float [4, 3, 2, 2], target Long [4]"));
  give(at::zeros({4, 64}), at::zeros({4}, at::kLong));
  EXPECT_THAT(why_refused(options()),
              AllOf(HasSubstr("test.toml:7: callbacks.0.input_key = \"input\": expected images of 1 or 3"),
                    HasSubstr("input Float [4, 64]")));
}

}  // namespace
}  // namespace tutti
