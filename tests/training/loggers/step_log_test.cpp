#include "training/loggers/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StepLogTest : public testing::Test {
 protected:
  // (step, batch, value) of the metrics among the records.
  static std::vector<std::tuple<int64_t, int64_t, double>> told(const std::vector<LogEntry>& entries) {
    std::vector<std::tuple<int64_t, int64_t, double>> found;
    for (const auto& entry : entries)
      if (const auto* metrics = std::get_if<LoggedMetrics>(&entry.what))
        found.emplace_back(entry.time.step, entry.time.at.batch, metrics->front().second);
    return found;
  }

  Timestamp now_;
};

TEST_F(StepLogTest, AnUnreadLogKeepsNothing) {
  StepLog log({}, now_);
  log.log_metrics({{"a", 1}});
  log.log_closing_text("Romeo");
  log.end_step();
  EXPECT_THAT(log.take_entries(), IsEmpty());
}

TEST_F(StepLogTest, WhereNumbersAloneAreReadNothingElseIsKeptButTables) {
  StepLog log({.numbers = true}, now_);
  log.log_text({"a", "text"});
  log.log_images({});
  log.log_hyperparameters({});
  log.log_trainer_metrics({{"time/batch", 1}});
  EXPECT_THAT(log.take_entries(), IsEmpty());
  log.log_traces({{"a", 1}});
  log.log_metrics({{"a", 1}});
  log.log_table({});
  EXPECT_EQ(log.take_entries().size(), 3u);
}

TEST_F(StepLogTest, DestinationsAreReportedAllInOrderAndWhen) {
  StepLog log({.numbers = true, .all = true}, now_);
  log.begin_step(5);
  now_.batch = 4;
  log.log_metrics({{"a", 1}});
  now_.batch = 5;
  log.log_metrics({{"a", 2}});
  log.begin_step(6);
  log.log_metrics({{"b", 3}});
  EXPECT_THAT(told(log.take_entries()),
              ElementsAre(std::tuple(5, 4, 1.0), std::tuple(5, 5, 2.0), std::tuple(6, 5, 3.0)));
  EXPECT_THAT(log.take_entries(), IsEmpty());
}

TEST_F(StepLogTest, LinesOfAnAbortedAttemptAreForgotten) {
  StepLog log({.numbers = true, .all = true}, now_);
  log.log_metrics({{"before", 1}});
  log.begin_attempt();
  log.log_metrics({{"a", 2}});
  log.abort_attempt();
  log.log_metrics({{"a", 3}});
  EXPECT_THAT(told(log.take_entries()), ElementsAre(std::tuple(1, 0, 1.0), std::tuple(1, 0, 3.0)));
}

TEST_F(StepLogTest, LinesBeforeAResumedStepBelongToIt) {
  StepLog log({.numbers = true, .all = true}, now_);
  log.log_metrics({{"a", 1}});
  now_.batch = 7;
  log.begin_run(8, /*continues=*/false);
  EXPECT_THAT(told(log.take_entries()), ElementsAre(std::tuple(8, 7, 1.0)));
}

// As stochastic_depth's at INIT: a resumed run has the lines of a run that was never stopped.
TEST_F(StepLogTest, MetricsOfThePreparationAreLoggedOnce) {
  StepLog log({.numbers = true, .all = true}, now_);
  log.log_metrics({{"a", 1}});
  log.log_text({"a", "text"});
  log.begin_run(8, /*continues=*/true);
  EXPECT_EQ(log.take_entries().size(), 1u);
}

}  // namespace
}  // namespace tutti
