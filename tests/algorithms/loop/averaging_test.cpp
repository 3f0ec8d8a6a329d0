#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "algorithms/loop/ema.h"
#include "algorithms/loop/swa.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// One weight, set by hand after each step.
class AveragingTest : public testing::Test {
 protected:
  AveragingTest() {
    state_.max_duration = Time(10, TimeUnit::kBatch);
    state_.views.push_back(whole_view("w", at::zeros({1})));
    state_.services->scheduled_lr = [this] { return scheduled_; };
  }
  void run(Algorithm& algorithm, Event event) {
    if (algorithm.match(event, state_)) algorithm.apply(event, state_, logger_);
  }
  void step(Algorithm& algorithm, double weight) {
    state_.views[0].tensor.fill_(weight);
    state_.next_lr.reset();
    state_.to_next_batch(1, 0, 1);
    run(algorithm, Event::kBatchEnd);
  }
  double weight() const { return state_.views[0].tensor.item<double>(); }

  State state_;
  Logger logger_;
  double scheduled_ = 0.5;
};

Time ba(double value) { return {value, TimeUnit::kBatch}; }

TEST_F(AveragingTest, EvaluationsAndPredictionsUseTheEmaAndTrainingDoesNot) {
  EMA ema({.smoothing = 0.5});
  run(ema, Event::kBeforeLoad);
  step(ema, 4);
  step(ema, 8);
  for (const auto& [begin, end] :
       {std::pair(Event::kEvalStart, Event::kEvalEnd), std::pair(Event::kPredictStart, Event::kPredictEnd)}) {
    run(ema, begin);
    EXPECT_EQ(weight(), 6);
    run(ema, end);
    EXPECT_EQ(weight(), 8);
  }
  EXPECT_EQ(state_.inference_tensors.at("w").item<double>(), 6);
}

TEST_F(AveragingTest, BeforeItsStartAnEmaDoesNothing) {
  EMA ema({.smoothing = 0.5, .ema_start = ba(3)});
  run(ema, Event::kBeforeLoad);
  step(ema, 100);
  step(ema, 50);
  run(ema, Event::kEvalStart);
  EXPECT_EQ(weight(), 50);
  step(ema, 8);
  step(ema, 4);
  run(ema, Event::kEvalStart);
  EXPECT_EQ(weight(), 6);
}

struct LateStart {
  const char *ema_start, *max_duration;
  bool in_epochs;  // updates
  bool warns;
};

// Epochs have 4 batches. Updates of epochs that end with a training of 6 batches come after 4.
TEST_F(AveragingTest, AveragingThatNeverBeginsIsAWarning) {
  state_.dataloader_len = 4;
  int warnings = 0;
  state_.services->on_warning = [&](const std::string& what) {
    EXPECT_THAT(what, HasSubstr("A has no effect: a training of "));
    ++warnings;
  };
  for (const auto& [start, whole, in_epochs, warns] : std::vector<LateStart>{{"8ba", "2ep", false, false},
                                                                             {"9ba", "2ep", false, true},
                                                                             {"2ep", "2ep", false, true},
                                                                             {"2ep", "2ep", true, false},
                                                                             {"3ep", "2ep", true, true},
                                                                             {"0.9dur", "6ba", false, false},
                                                                             {"1.1dur", "6ba", false, true},
                                                                             {"5ba", "6ba", true, true},
                                                                             {"0.6dur", "6ba", true, false},
                                                                             {"0.7dur", "6ba", true, true},
                                                                             {"0ba", "3ba", true, true},
                                                                             {"100tok", "3ba", false, false},
                                                                             {"9ba", "10sp", false, false}}) {
    state_.max_duration = Time::parse(whole);
    warnings = 0;
    const Time interval(1, in_epochs ? TimeUnit::kEpoch : TimeUnit::kBatch), from = Time::parse(start);
    EMA({.smoothing = 0.5, .ema_start = from, .update_interval = interval}).require(state_);
    SWA({.swa_start = from, .swa_end = from + Time(1, from.unit()), .update_interval = interval})
        .require(state_);
    EXPECT_EQ(warnings, warns ? 2 : 0) << start << " of " << whole;
  }
}

TEST_F(AveragingTest, AnEmaNeedsOneOfHalfLifeAndSmoothingInUnitsThatFit) {
  EXPECT_THAT([] { EMA({.half_life = ba(3), .smoothing = 0.5}); },
              ThrowsMessage<UserError>("expected either half_life or smoothing"));
  EXPECT_THAT([] { EMA({.half_life = ba(3), .update_interval = Time(1, TimeUnit::kEpoch)}); },
              ThrowsMessage<UserError>(HasSubstr("the same unit")));
  EXPECT_DOUBLE_EQ(EMA({.half_life = ba(3), .update_interval = ba(3)}).smoothing(), 0.5);
}

TEST_F(AveragingTest, SwaTrainsOnWithTheMeanFromItsEndOn) {
  SWA swa({.swa_start = ba(2), .swa_end = ba(4), .update_interval = ba(1)});
  run(swa, Event::kBeforeLoad);
  for (const double w : {100, 1, 2}) step(swa, w);
  EXPECT_EQ(weight(), 2);
  step(swa, 6);
  EXPECT_EQ(weight(), 3);
  step(swa, 50);
  EXPECT_EQ(weight(), 50);
}

TEST_F(AveragingTest, ASwaThatIsNotAtItsEndEndsWithTheTraining) {
  SWA swa({.swa_start = ba(1), .swa_end = ba(40), .update_interval = ba(1)});
  run(swa, Event::kBeforeLoad);
  for (const double w : {2, 4}) step(swa, w);
  SWA composers = swa;
  run(swa, Event::kFitEnd);
  EXPECT_EQ(weight(), 3);
  state_.composer = true;
  EXPECT_FALSE(composers.match(Event::kFitEnd, state_));
}

// The rate moves to swa_lr within two updates, and stays there between updates and while the schedule moves.
// EMA's average is 0.75 x 8 + 0.25 x 4 when SWA ends with the mean of 8 and 4.
TEST_F(AveragingTest, EvaluationsAfterSwaUseTheAveragesThatItsOptionNames) {
  const std::tuple<std::optional<bool>, double, std::size_t> cases[] = {
      {true, 6.0, 0U}, {false, 7.0, 0U}, {std::nullopt, 7.0, 1U}};
  for (const auto& [replaces, evaluated, warnings] : cases) {
    std::vector<std::string> said;
    state_.services->on_warning = [&](const std::string& what) { said.push_back(what); };
    state_.timestamp = {};
    EMA ema({.smoothing = 0.75});
    SWA swa({.swa_start = ba(1), .swa_end = ba(2), .update_interval = ba(1), .replace_ema = replaces});
    run(ema, Event::kBeforeLoad);
    run(swa, Event::kBeforeLoad);
    for (const double weight : {8.0, 4.0}) {
      step(ema, weight);
      run(swa, Event::kBatchEnd);
    }
    EXPECT_EQ(weight(), 6);
    run(ema, Event::kEvalStart);
    EXPECT_EQ(weight(), evaluated);
    EXPECT_EQ(said.size(), warnings);
    for (const std::string& what : said) EXPECT_THAT(what, HasSubstr("replace_ema = true"));
  }
}

TEST_F(AveragingTest, SwaMovesTheRate) {
  SWA swa({.swa_start = ba(2),
           .swa_end = ba(9),
           .update_interval = ba(1),
           .schedule_swa_lr = true,
           .anneal_steps = 2,
           .swa_lr = 0.1});
  run(swa, Event::kBeforeLoad);
  step(swa, 1);
  EXPECT_EQ(state_.next_lr, std::nullopt);
  step(swa, 1);
  EXPECT_DOUBLE_EQ(state_.next_lr.value(), 0.3);
  step(swa, 1);
  EXPECT_DOUBLE_EQ(state_.next_lr.value(), 0.1);
  scheduled_ = 0.2;
  step(swa, 1);
  EXPECT_DOUBLE_EQ(state_.next_lr.value(), 0.1);
}

TEST_F(AveragingTest, ARestoredSwaContinuesCounting) {
  const SWA::Options options{.swa_start = ba(1), .swa_end = ba(40), .update_interval = ba(2)};
  SWA swa(options);
  run(swa, Event::kBeforeLoad);
  for (const double w : {2, 3, 4}) step(swa, w);
  SWA resumed(options);
  run(resumed, Event::kBeforeLoad);
  resumed.state_tensors()[0].second.copy_(swa.state_tensors()[0].second);
  resumed.restore(swa.state());
  for (const double w : {5, 9}) step(resumed, w);
  run(resumed, Event::kFitEnd);
  EXPECT_EQ(weight(), (2 + 4 + 9) / 3.0);
}

TEST_F(AveragingTest, SwaTimesThatDoNotFitAreErrors) {
  EXPECT_THAT([] { SWA({.swa_start = ba(4)}); }, ThrowsMessage<UserError>(HasSubstr("the same unit")));
  EXPECT_THAT([] { SWA({.swa_start = ba(4), .swa_end = ba(4)}); },
              ThrowsMessage<UserError>(HasSubstr("after swa_start")));
}

}  // namespace
}  // namespace tutti
