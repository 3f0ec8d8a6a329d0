#include "training/metrics/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key ignore_index(const char* fallback) {
  return {"ignore_index", kInteger, fallback, "targets that do not count"};
}

Key num_classes(const char* fallback) {
  return Key{"num_classes", kInteger, fallback, "number of classes"}.at_least(1).at_most(1e9);
}

Key batch_means() {
  return {"batch_means", kBoolean, "none",
          "weight all batches equally, as in Composer; as [compat] says when absent"};
}

Key measured_name() {
  return {"name", kText, "none",
          "NAME in metrics/LABEL/NAME, for several metrics of a kind; the kind when absent"};
}

std::vector<Entry> of_classes() {
  return {
      {"MulticlassAccuracy",
       "Fraction of samples with the highest score at the target.",
       {num_classes("none"),
        Key{"top_k", kInteger, "1", "a target among this many highest scores counts as correct"}.at_least(1),
        Key{"average", kText, "micro",
            "micro: over samples; macro: the mean over classes; weighted: as micro"}
            .one_of({"micro", "macro", "weighted"}),
        ignore_index("-100")}},
      {"CrossEntropy",
       "Mean negative log-likelihood of the target class, in nats.",
       {ignore_index("-100"), batch_means()}},
      {"BinaryF1Score", "F1 of class 1 of two classes: the harmonic mean of precision and recall."},
      {"MIoU",
       "Mean over classes of intersection over union, in percent.",
       {num_classes(""), ignore_index("-1")}},
      {"Dice",
       "Mean over classes but 0, the background, of Dice's coefficient, in percent.",
       {Key{"num_classes", kInteger, "", "number of classes, with the background"}.at_least(2).at_most(1e9),
        batch_means()}},
  };
}

std::vector<Entry> of_text_and_numbers() {
  return {
      {"LanguageCrossEntropy",
       "Mean negative log-likelihood of the next token, in nats per token.",
       {ignore_index("-100")}},
      {"LanguagePerplexity", "e to the power of LanguageCrossEntropy.", {ignore_index("-100")}},
      {"MaskedAccuracy", "Fraction of tokens with the highest score at the target.", {ignore_index("-100")}},
      {"MeanSquaredError",
       "Mean squared difference of outputs and targets.",
       {{"squared", kBoolean, "true", "false: the root mean square"}}},
      {"LossMetric",
       "Mean of a loss of outputs and targets.",
       {Key{"loss", kText, "", "which loss"}.one_of({"mse", "l1", "smooth_l1", "bce_with_logits",
                                                     "soft_cross_entropy", "binary_cross_entropy_with_logits",
                                                     "dice"}),
        batch_means()}},
  };
}

}  // namespace

Catalog metric_catalog() {
  std::vector<Entry> entries = of_classes();
  for (auto& entry : of_text_and_numbers()) entries.push_back(std::move(entry));
  for (auto& entry : entries) entry.keys.push_back(measured_name());
  return {.section = "",
          .noun = "metric",
          .doc = "Metrics of evaluations; models have default metrics.",
          .entries = std::move(entries)};
}

}  // namespace tutti
