#include "training/metrics/options.h"

#include "models/loss_options.h"

namespace tutti {
namespace {

constexpr double kMostClasses = 1e9;

template <class Options>
Bound<Options> ignored() {
  return option("ignore_index", &Options::ignore_index, "targets that do not count");
}

template <class Options>
Bound<Options> means_of_batches() {
  return option("batch_means", &Options::batch_means,
                "weight all batches equally, as in Composer; as [compat] says when absent");
}

}  // namespace

Kind<MulticlassAccuracyOptions> MulticlassAccuracyOptions::kind() {
  using Options = MulticlassAccuracyOptions;
  return {"MulticlassAccuracy",
          "Fraction of samples with the highest score at the target.",
          {option("num_classes", &Options::num_classes, "number of classes; from the data when absent")
               .may_be_absent()
               .at_least(1)
               .at_most(kMostClasses),
           option("top_k", &Options::top_k, "a target among this many highest scores counts as correct")
               .at_least(1),
           option("average", &Options::macro,
                  "micro: over samples; macro: the mean over classes; weighted: as micro",
                  {{"micro", false}, {"macro", true}, {"weighted", false}}),
           ignored<Options>()}};
}

Kind<CrossEntropyOptions> CrossEntropyOptions::kind() {
  using Options = CrossEntropyOptions;
  return {"CrossEntropy",
          "Mean negative log-likelihood of the target class, in nats.",
          {ignored<Options>(), means_of_batches<Options>()}};
}

Kind<MIoUOptions> MIoUOptions::kind() {
  using Options = MIoUOptions;
  return {"MIoU",
          "Mean over classes of intersection over union, in percent.",
          {option("num_classes", &Options::num_classes, "number of classes; from the data when absent")
               .may_be_absent()
               .at_least(1)
               .at_most(kMostClasses),
           ignored<Options>()}};
}

Kind<DiceOptions> DiceOptions::kind() {
  using Options = DiceOptions;
  return {"Dice",
          "Mean over classes but 0, the background, of Dice's coefficient, in percent.",
          {option("num_classes", &Options::num_classes,
                  "number of classes, with the background; from the data when absent")
               .may_be_absent()
               .at_least(2)
               .at_most(kMostClasses),
           means_of_batches<Options>()}};
}

Kind<LanguageCrossEntropyOptions> LanguageCrossEntropyOptions::kind() {
  return {"LanguageCrossEntropy",
          "Mean negative log-likelihood of the next token, in nats per token.",
          {ignored<LanguageCrossEntropyOptions>()}};
}

Kind<LanguagePerplexityOptions> LanguagePerplexityOptions::kind() {
  return {"LanguagePerplexity",
          "e to the power of LanguageCrossEntropy.",
          {ignored<LanguagePerplexityOptions>()}};
}

Kind<MaskedAccuracyOptions> MaskedAccuracyOptions::kind() {
  return {"MaskedAccuracy",
          "Fraction of tokens with the highest score at the target.",
          {ignored<MaskedAccuracyOptions>()}};
}

Kind<MeanSquaredErrorOptions> MeanSquaredErrorOptions::kind() {
  return {"MeanSquaredError",
          "Mean squared difference of outputs and targets.",
          {option("squared", &MeanSquaredErrorOptions::squared, "false: the root mean square")}};
}

Kind<MeanAbsoluteErrorOptions> MeanAbsoluteErrorOptions::kind() {
  return {"MeanAbsoluteError", "Mean absolute difference of outputs and targets."};
}

Kind<R2ScoreOptions> R2ScoreOptions::kind() {
  using Options = R2ScoreOptions;
  return {"R2Score",
          "Coefficient of determination: the part of the targets' variance that the outputs explain.",
          {option("num_outputs", &Options::num_outputs, "outputs a sample").at_least(1).at_most(kMostClasses),
           option("multioutput", &Options::by_variance, "the mean over outputs, or weighted by variances",
                  {{"uniform_average", false}, {"variance_weighted", true}})}};
}

Kind<ChoiceAccuracyOptions> ChoiceAccuracyOptions::kind() {
  return {"ChoiceAccuracy",
          "Fraction of questions of kind = \"choices\" whose right choice has the highest log-probability; "
          "lm-eval's acc."};
}

Kind<ChoiceAccuracyNormOptions> ChoiceAccuracyNormOptions::kind() {
  using Options = ChoiceAccuracyNormOptions;
  return {"ChoiceAccuracyNorm",
          "As ChoiceAccuracy, with each log-probability divided by the length of its choice; lm-eval's "
          "acc_norm.",
          {option("length", &Options::length, "of a choice; in bytes: lm-eval's acc_bytes",
                  {{"characters", ChoiceLength::kCharacters}, {"bytes", ChoiceLength::kBytes}})}};
}

Kind<ExactMatchOptions> ExactMatchOptions::kind() {
  using Options = ExactMatchOptions;
  return {"ExactMatch",
          "Fraction of the answers to kind = \"prompts\" that equal a right answer, but for blanks around.",
          {option("ignore_case", &Options::ignore_case, "large and small letters are equal"),
           option("ignore_punctuation", &Options::ignore_punctuation, "without ASCII punctuation")}};
}

Kind<BleuOptions> BleuOptions::kind() {
  return {
      "BLEU",
      "BLEU of the answers to kind = \"prompts\", 0 to 100: sacrebleu's, with tokenizer 13a and smoothing "
      "exp."};
}

Kind<ChrfOptions> ChrfOptions::kind() {
  return {"CHRF", "chrF2 of the answers to kind = \"prompts\", 0 to 100: sacrebleu's chrF."};
}

Kind<LossMetricOptions> LossMetricOptions::kind() {
  using Options = LossMetricOptions;
  return {"LossMetric",
          "Mean of a loss of outputs and targets.",
          {option("loss", &Options::loss, "which loss")
               .required()
               .each(std::make_shared<const Catalog>(loss_catalog())),
           means_of_batches<Options>()}};
}

Catalog metric_catalog() {
  std::vector<Entry> entries = MetricKinds::entries();
  for (auto& entry : entries) {
    entry.keys.push_back(
        {"output", KeyType::kText, "none",
         "of several outputs, the name of the one to measure; that of the model's first loss "
         "when absent"});
    entry.keys.push_back({"target", KeyType::kText, "none",
                          "the array that it is compared with; that of the output's loss when absent, or "
                          "\"target\""});
    entry.keys.push_back({"name", KeyType::kText, "none",
                          "NAME in metrics/LABEL/NAME, for several metrics of a kind; the kind when absent"});
  }
  entries.push_back(plugin_entry("metric"));
  entries.back().keys.push_back({"measured_name", KeyType::kText, "none",
                                 "NAME in metrics/LABEL/NAME; the metric's own name when absent"});
  return {.section = "",
          .noun = "metric",
          .doc = "Metrics of evaluations; models have default metrics.",
          .entries = std::move(entries)};
}

}  // namespace tutti
