#include "models/loss_options.h"

namespace tutti {
namespace {

constexpr const char* kBalanced = "balanced";

template <class Options>
Bound<Options> positive_weight() {
  const auto read = [](Options& options, const Setting& key) {
    if (key.is_text()) return;  // balanced: numbers take its place (job/class_weights.h)
    options.pos_weight = key.is_array() ? key.numbers() : std::vector<double>{key.number()};
  };
  return {Key{"pos_weight", KeyType::kNumberOrNumbers, "none",
              "weight of the targets' ones: of each class, or one for all; 1 when absent; balanced: "
              "zeros / ones of each class among the training targets"}
              .or_word(kBalanced)
              .at_least(0),
          read};
}

template <class Options>
Bound<Options> refused(const char* key) {
  return Key{key, KeyType::kBoolean, "none", ""}.not_carried_over(
      "such a loss is no mean over samples: with microbatches or ranks its gradients would be others");
}

}  // namespace

Kind<CrossEntropyLossOptions> CrossEntropyLossOptions::kind() {
  return {
      "cross_entropy",
      "Cross entropy, of class indices or of a probability for each class; torch's, and Composer's "
      "soft_cross_entropy. The mean over indices is weighted, as torch's; model.ignore_index leaves some "
      "out.",
      {{Key{"weight", KeyType::kNumbers, "none",
            "of each class; 1 when absent; balanced: N / (C n) of the training samples, with n of the class "
            "and C classes, as sklearn's"}
            .also_named({"class_weights", "class_weight"})
            .or_word(kBalanced)
            .at_least(0),
        [](CrossEntropyLossOptions& options, const Setting& key) {
          if (!key.is_text()) options.weight = key.numbers();
        }}},
      {.composer = "soft_cross_entropy"}};
}

Kind<BinaryCrossEntropyLossOptions> BinaryCrossEntropyLossOptions::kind() {
  return {"binary_cross_entropy_with_logits",
          "Binary cross entropy of each score, summed over the classes; Composer's.",
          {positive_weight<BinaryCrossEntropyLossOptions>()}};
}

Kind<BceWithLogitsLossOptions> BceWithLogitsLossOptions::kind() {
  return {"bce_with_logits",
          "Binary cross entropy of each score, the mean over all; torch's BCEWithLogitsLoss.",
          {positive_weight<BceWithLogitsLossOptions>()}};
}

Kind<MseLossOptions> MseLossOptions::kind() { return {"mse", "Mean squared difference; torch's MSELoss."}; }

Kind<L1LossOptions> L1LossOptions::kind() { return {"l1", "Mean absolute difference; torch's L1Loss."}; }

Kind<SmoothL1LossOptions> SmoothL1LossOptions::kind() {
  return {"smooth_l1",
          "Mean difference, squared where it is small; torch's SmoothL1Loss.",
          {option("beta", &SmoothL1LossOptions::beta, "differences below are squared").at_least(0)}};
}

Kind<DiceLossOptions> DiceLossOptions::kind() {
  using Options = DiceLossOptions;
  return {"dice",
          "1 - Dice's coefficient of each class, of predictions in [0, 1]: models that give scores need "
          "sigmoid or softmax; Composer's DiceLoss.",
          {option("sigmoid", &Options::sigmoid, "apply sigmoid to the scores first"),
           option("softmax", &Options::softmax, "apply softmax over the classes first; excludes sigmoid"),
           option("squared_pred", &Options::squared_pred, "square predictions and targets in the divisor"),
           option("jaccard", &Options::jaccard, "intersection over union in place of Dice's coefficient"),
           refused<Options>("batch"), refused<Options>("ignore_absent_classes")},
          {.composer = "DiceLoss"}};
}

Kind<FocalLossOptions> FocalLossOptions::kind() {
  using Options = FocalLossOptions;
  return {"focal",
          "Binary cross entropy of each score that counts less the better it is, the mean over all; "
          "torchvision's sigmoid_focal_loss (Lin et al. 2017, arXiv:1708.02002).",
          {option("alpha", &Options::alpha,
                  "weight of the targets' ones, and 1 - alpha of zeros; negative: no weights")
               .at_most(1),
           option("gamma", &Options::gamma, "the power of the error that an element is weighted by")
               .at_least(0)}};
}

Catalog loss_catalog() {
  std::vector<Entry> entries = LossKinds::entries();
  entries.push_back(plugin_entry("loss"));
  return {.section = "",
          .noun = "loss",
          .doc = "Losses of models that are trained against one target.",
          .entries = std::move(entries)};
}

}  // namespace tutti
