#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "recipe/options.h"

// The losses that a recipe can choose, with their keys. Free of libtorch.
namespace tutti {

class Loss;
using LossPtr = std::shared_ptr<const Loss>;

// The reduction of the losses of single items. Values are libtorch's at::Reduction.
enum class LossReduction : int64_t { kNone, kMean, kSum };

struct CrossEntropyLossOptions {
  std::vector<double> weight = {};  // of each class; empty = 1

  static Kind<CrossEntropyLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

// Composer's, summed over the classes.
struct BinaryCrossEntropyLossOptions {
  std::vector<double> pos_weight = {};  // of each class, or of all classes alike; empty = 1

  static Kind<BinaryCrossEntropyLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

// torch's, a mean over all elements.
struct BceWithLogitsLossOptions {
  std::vector<double> pos_weight = {};

  static Kind<BceWithLogitsLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

struct MseLossOptions {
  static Kind<MseLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

struct L1LossOptions {
  static Kind<L1LossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

struct SmoothL1LossOptions {
  double beta = 1.0;  // squared below this difference, absolute above

  static Kind<SmoothL1LossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

struct DiceLossOptions {
  bool sigmoid = false;  // apply sigmoid to the scores first
  bool softmax = false;  // apply softmax over the classes first; excludes sigmoid
  bool squared_pred = false;
  bool jaccard = false;  // intersection over union instead of Dice
  // Not in recipes: the loss is then no mean over samples, and microbatches would change its gradients.
  bool batch = false;                  // sum areas over the samples too
  bool ignore_absent_classes = false;  // skip classes without a target
  LossReduction reduction = LossReduction::kMean;

  static Kind<DiceLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

struct FocalLossOptions {
  double alpha = 0.25;  // weight of positive elements, 1 - alpha of negative elements; below 0 = no weights
  double gamma = 2.0;
  LossReduction reduction = LossReduction::kMean;

  static Kind<FocalLossOptions> kind();
  LossPtr make(const Setting& keys) const;
};

using LossKinds =
    Kinds<CrossEntropyLossOptions, BinaryCrossEntropyLossOptions, BceWithLogitsLossOptions, MseLossOptions,
          L1LossOptions, SmoothL1LossOptions, DiceLossOptions, FocalLossOptions>;

// Not a section of the recipe. Shown by `tutti list losses`.
Catalog loss_catalog();

}  // namespace tutti
