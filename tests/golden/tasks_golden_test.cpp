// BLEU and chrF beside sacrebleu (make_tasks.py): of each pair alone, and of all together in the last line.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/golden/golden_json.h"
#include "training/metrics/answers.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

constexpr double kScoreTolerance = 1e-9;  // of 100

class ScoresOfSacrebleu {
 public:
  void judge(const nlohmann::json& pair) {
    for (const auto& metric : metrics_)
      dynamic_cast<AnswerMetric&>(*metric).judge({pair["answer"], pair["references"]});
  }
  void expect(const nlohmann::json& scores) const {
    for (const auto& metric : metrics_)
      EXPECT_NEAR(metric->compute(), scores[metric->name()].get<double>(), kScoreTolerance) << scores;
  }

 private:
  std::vector<MetricPtr> metrics_ = {};

 public:
  ScoresOfSacrebleu() {
    for (const char* name : {"BLEU", "CHRF"}) metrics_.push_back(make_metric(name));
  }
};

TEST(TextScoresGolden, BleuAndChrfAreSacrebleus) {
  std::ifstream lines(std::string(TUTTI_SOURCE_DIR) + "/tests/golden/tasks/scores.jsonl");
  ScoresOfSacrebleu corpus;
  int pairs = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json pair = nlohmann::json::parse(line);
    if (!pair.contains("answer")) {
      corpus.expect(pair);
      EXPECT_GT(pair["BLEU"], 10) << "the texts have little in common";
      continue;
    }
    ScoresOfSacrebleu alone;
    alone.judge(pair);
    alone.expect(pair);
    corpus.judge(pair);
    ++pairs;
  }
  EXPECT_EQ(pairs, 34);
}

TEST(ExactMatchTest, CountsAnswersThatEqualAReference) {
  const auto matches = [](const std::string& keys, const JudgedAnswer& answer) {
    Setting table = table_of_kind(Setting(std::string("ExactMatch"), "metric", {}));
    if (!keys.empty()) table.table().emplace_back(keys, Setting(true, keys, {}));
    const MetricPtr metric = make_metric(table);
    dynamic_cast<AnswerMetric&>(*metric).judge(answer);
    return metric->compute();
  };
  EXPECT_EQ(matches("", {"Ämter", {"x", "Ämter"}}), 1);
  EXPECT_EQ(matches("", {"Ämter", {"ämter"}}), 0);
  EXPECT_EQ(matches("ignore_case", {"Ämter", {"ämter"}}), 1);
  EXPECT_EQ(matches("ignore_case", {"a.", {"A"}}), 0);
  EXPECT_EQ(matches("ignore_punctuation", {"a.", {"\"a\""}}), 1);
}

}  // namespace
}  // namespace tutti
