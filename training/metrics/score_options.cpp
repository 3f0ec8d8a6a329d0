#include "training/metrics/score_options.h"

namespace tutti {
namespace {

constexpr double kMostScores = 1e5;
constexpr double kMostCells = 1000;  // classes of a matrix: each of its numbers is logged
constexpr double kMostThresholds = 1e4;

constexpr const char* kScoreNames[] = {"F1Score", "Precision", "Recall"};
constexpr const char* kScoreDocs[] = {"The harmonic mean of precision and recall",
                                      "The part of what is predicted that is right",
                                      "The part of what is wanted that is predicted"};
constexpr const char* kAreaNames[] = {"AUROC", "AveragePrecision"};
constexpr const char* kAreaDocs[] = {
    "Area under the curve of true positive rate against false positive rate",
    "Average precision: the area under the curve of precision against recall"};

std::string score_name(const char* task, Score score) {
  return std::string(task) + kScoreNames[static_cast<int>(score)];
}
std::string area_name(const char* task, Area area) {
  return std::string(task) + kAreaNames[static_cast<int>(area)];
}
std::string score_doc(Score score) { return kScoreDocs[static_cast<int>(score)]; }
std::string area_doc(Area area) { return kAreaDocs[static_cast<int>(area)]; }

template <class Options>
Bound<Options> ignored_targets() {
  return option("ignore_index", &Options::ignore_index, "targets that do not count");
}

template <class Options>
Bound<Options> probability_threshold() {
  return option("threshold", &Options::threshold,
                "a probability above is predicted as 1; of scores it is their "
                "sigmoid")
      .at_least(0)
      .at_most(1);
}

template <class Options>
Bound<Options> averaged(const char* of) {
  return option("average", &Options::average,
                std::string("macro: the mean over ") + of +
                    "; micro: over all together; weighted: by targets; "
                    "none: a number each, logged behind the name and a slash",
                {{"macro", Average::kMacro},
                 {"micro", Average::kMicro},
                 {"weighted", Average::kWeighted},
                 {"none", Average::kNone}});
}

template <class Options>
Bound<Options> class_count() {
  return option("num_classes", &Options::num_classes, "number of classes; from the data when absent")
      .may_be_absent()
      .at_least(1)
      .at_most(kMostScores);
}

template <class Options>
Bound<Options> label_count() {
  return option("num_labels", &Options::num_labels, "number of labels; from the data when absent")
      .may_be_absent()
      .at_least(1)
      .at_most(kMostScores);
}

template <class Options>
Bound<Options> curve_thresholds() {
  return option("thresholds", &Options::thresholds,
                "points of the curve: probabilities, equally spaced from 0 to 1; when absent the curve goes "
                "through all scores of an evaluation, or, of more than 1,048,576 scores or in training, "
                "through bins of scores")
      .may_be_absent()
      .at_least(2)
      .at_most(kMostThresholds);
}

}  // namespace

std::vector<std::string> numbered_parts(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back('/' + std::to_string(i));
  return names;
}

template <Score kScore>
Kind<BinaryScoreOptions<kScore>> BinaryScoreOptions<kScore>::kind() {
  using Options = BinaryScoreOptions;
  return {score_name("Binary", kScore),
          score_doc(kScore) + ", of targets of 0 and 1; the model has one or two scores.",
          {probability_threshold<Options>(), ignored_targets<Options>()},
          {.composer = kScore == Score::kF1 ? "BinaryF1" : ""}};
}

template <Score kScore>
Kind<MulticlassScoreOptions<kScore>> MulticlassScoreOptions<kScore>::kind() {
  using Options = MulticlassScoreOptions;
  return {score_name("Multiclass", kScore),
          score_doc(kScore) + ", of classes.",
          {class_count<Options>(), averaged<Options>("classes"), ignored_targets<Options>()}};
}

template <Score kScore>
Kind<MultilabelScoreOptions<kScore>> MultilabelScoreOptions<kScore>::kind() {
  using Options = MultilabelScoreOptions;
  return {score_name("Multilabel", kScore),
          score_doc(kScore) + ", of several labels a sample.",
          {label_count<Options>(), probability_threshold<Options>(), averaged<Options>("labels"),
           ignored_targets<Options>()}};
}

template <Area kArea>
Kind<BinaryAreaOptions<kArea>> BinaryAreaOptions<kArea>::kind() {
  using Options = BinaryAreaOptions;
  return {area_name("Binary", kArea),
          area_doc(kArea) + ", of targets of 0 and 1; the model has one or two scores.",
          {curve_thresholds<Options>(), ignored_targets<Options>()}};
}

template <Area kArea>
Kind<MulticlassAreaOptions<kArea>> MulticlassAreaOptions<kArea>::kind() {
  using Options = MulticlassAreaOptions;
  return {area_name("Multiclass", kArea),
          area_doc(kArea) + ", of each class against the others.",
          {class_count<Options>(), curve_thresholds<Options>(), averaged<Options>("classes"),
           ignored_targets<Options>()}};
}

template <Area kArea>
Kind<MultilabelAreaOptions<kArea>> MultilabelAreaOptions<kArea>::kind() {
  using Options = MultilabelAreaOptions;
  return {area_name("Multilabel", kArea),
          area_doc(kArea) + ", of several labels a sample.",
          {label_count<Options>(), curve_thresholds<Options>(), averaged<Options>("labels"),
           ignored_targets<Options>()}};
}

Kind<ConfusionMatrixOptions> ConfusionMatrixOptions::kind() {
  using Options = ConfusionMatrixOptions;
  return {"ConfusionMatrix",
          "How often targets of class t are predicted as class p: the number ConfusionMatrix/t/p.",
          {option("num_classes", &Options::num_classes, "number of classes; from the data when absent")
               .may_be_absent()
               .at_least(1)
               .at_most(kMostCells),
           option("normalize", &Options::normalize,
                  "divide by the targets of class t, the predictions of class p, or all; none: counts",
                  {{"none", Normalize::kNone},
                   {"true", Normalize::kTrue},
                   {"pred", Normalize::kPred},
                   {"all", Normalize::kAll}}),
           ignored_targets<Options>()}};
}

Kind<RetrievalRecallOptions> RetrievalRecallOptions::kind() {
  using Options = RetrievalRecallOptions;
  return {"RetrievalRecall",
          "Recall at k: the part of a sample's labels among its k highest scores.",
          {option("top_k", &Options::top_k, "the k").required().at_least(1).at_most(kMostScores),
           option("empty_target_action", &Options::skips_empty, "a sample without labels counts as 0, or not",
                  {{"neg", false}, {"skip", true}})}};
}

template Kind<BinaryScoreOptions<Score::kF1>> BinaryScoreOptions<Score::kF1>::kind();
template Kind<BinaryScoreOptions<Score::kPrecision>> BinaryScoreOptions<Score::kPrecision>::kind();
template Kind<BinaryScoreOptions<Score::kRecall>> BinaryScoreOptions<Score::kRecall>::kind();
template Kind<MulticlassScoreOptions<Score::kF1>> MulticlassScoreOptions<Score::kF1>::kind();
template Kind<MulticlassScoreOptions<Score::kPrecision>> MulticlassScoreOptions<Score::kPrecision>::kind();
template Kind<MulticlassScoreOptions<Score::kRecall>> MulticlassScoreOptions<Score::kRecall>::kind();
template Kind<MultilabelScoreOptions<Score::kF1>> MultilabelScoreOptions<Score::kF1>::kind();
template Kind<MultilabelScoreOptions<Score::kPrecision>> MultilabelScoreOptions<Score::kPrecision>::kind();
template Kind<MultilabelScoreOptions<Score::kRecall>> MultilabelScoreOptions<Score::kRecall>::kind();
template Kind<BinaryAreaOptions<Area::kRoc>> BinaryAreaOptions<Area::kRoc>::kind();
template Kind<BinaryAreaOptions<Area::kPrecisionRecall>> BinaryAreaOptions<Area::kPrecisionRecall>::kind();
template Kind<MulticlassAreaOptions<Area::kRoc>> MulticlassAreaOptions<Area::kRoc>::kind();
template Kind<MulticlassAreaOptions<Area::kPrecisionRecall>>
MulticlassAreaOptions<Area::kPrecisionRecall>::kind();
template Kind<MultilabelAreaOptions<Area::kRoc>> MultilabelAreaOptions<Area::kRoc>::kind();
template Kind<MultilabelAreaOptions<Area::kPrecisionRecall>>
MultilabelAreaOptions<Area::kPrecisionRecall>::kind();

}  // namespace tutti
