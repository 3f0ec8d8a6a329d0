#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_key.h"
#include "data/transforms/options.h"
#include "recipe/options.h"

// The kinds of [[algorithms]] that change the data, with Composer's names and defaults. Free of libtorch.
namespace tutti {

class Algorithm;
using AlgorithmPtr = std::shared_ptr<Algorithm>;

struct AugMixAlgorithm : AugMixOptions {
  static Kind<AugMixAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct RandAugmentAlgorithm : RandAugmentOptions {
  static Kind<RandAugmentAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct ColOutAlgorithm : ColOutOptions {
  bool batch = true;               // drop the same rows and columns of all images of a batch
  BatchKey input_key = "input";    // of batches
  BatchKey target_key = "target";  // of batches

  static Kind<ColOutAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct SampleMixingOptions {
  bool interpolate_loss = false;  // mix the losses of both targets instead of the targets
  BatchKey input_key = "input";
  BatchKey target_key = "target";
};

struct CutMixOptions {
  double alpha = 1.0;                 // the share outside the box is drawn from Beta(alpha, alpha)
  std::optional<double> length = {};  // if given, that share is about length^2, as in Composer, and not drawn
  bool uniform_sampling = false;
};

struct CutMixAlgorithm : CutMixOptions, SampleMixingOptions {
  static Kind<CutMixAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct CutOutAlgorithm : CutOutOptions {
  BatchKey input_key = "input";

  static Kind<CutOutAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct MixUpOptions : SampleMixingOptions {
  double alpha = 0.2;  // the partner's weight is drawn from Beta(alpha, alpha)

  static Kind<MixUpOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

enum class ResizeMode {
  kResize,  // the nearest pixels, as of torch's interpolate(mode = "nearest")
  kCrop     // a crop at a random place: a view
};

struct ProgressiveResizingOptions {
  ResizeMode mode = ResizeMode::kResize;
  double initial_scale = 0.5;
  double finetune_fraction = 0.2;
  double delay_fraction = 0.5;  // delay_fraction + finetune_fraction <= 1
  int64_t size_increment = 4;
  bool resize_targets = false;
  BatchKey input_key = "input";
  BatchKey target_key = "target";

  static Kind<ProgressiveResizingOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

using AugmentationKinds = Kinds<AugMixAlgorithm, RandAugmentAlgorithm, ColOutAlgorithm, CutMixAlgorithm,
                                CutOutAlgorithm, MixUpOptions, ProgressiveResizingOptions>;

}  // namespace tutti
