#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/options.h"
#include "recipe/time/time.h"
#include "training/engine/event.h"

// The kinds of [[algorithms]] that change the model, with Composer's names and defaults. Free of libtorch.
namespace tutti {

class Algorithm;
using AlgorithmPtr = std::shared_ptr<Algorithm>;

struct AlibiOptions {
  int64_t max_sequence_length = 0;
  double train_sequence_length_scaling = 0.25;

  static Kind<AlibiOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct BlurPoolOptions {
  bool replace_convs = true;     // strided Conv2d become BlurConv2d
  bool replace_maxpools = true;  // MaxPool2d become BlurMaxPool2d
  bool blur_first = true;
  int64_t min_channels = 16;  // convolutions of fewer input channels stay

  static Kind<BlurPoolOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct ChannelsLastOptions {
  static Kind<ChannelsLastOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct FactorizeOptions {
  bool factorize_convs = true;
  bool factorize_linears = true;
  int64_t min_channels = 512;     // least in and out channels of a replaced Conv2d
  double latent_channels = 0.25;  // below 1 a fraction of min(in, out)
  int64_t min_features = 512;     // the same of a Linear
  double latent_features = 0.25;
};

// The defaults of the algorithm; FactorizeOptions has the function's.
struct FactorizeAlgorithm : FactorizeOptions {
  FactorizeAlgorithm() : FactorizeOptions{.min_channels = 256, .min_features = 256, .latent_features = 128} {}

  static Kind<FactorizeAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct GatedLinearUnitsOptions {
  std::optional<std::string> act_fn = {};  // default: the activation of the replaced blocks
  bool gated_layer_bias = false;
  bool non_gated_layer_bias = false;

  static Kind<GatedLinearUnitsOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct GhostBatchNormOptions {
  int64_t ghost_batch_size = 32;

  static Kind<GhostBatchNormOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct GyroDropoutOptions {
  double p = 0.5;       // of a number to be dropped
  int64_t sigma = 256;  // masks of the whole training
  int64_t tau = 16;     // masks of a batch

  static Kind<GyroDropoutOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

// PEFT's LoraConfig, with its defaults.
struct LoraOptions {
  int64_t r = 8;
  double alpha = 8;
  double dropout = 0;
  std::vector<std::string> targets = {};  // empty: PEFT's for the model
  bool use_rslora = false;
  std::vector<std::string> modules_to_save = {};
  std::optional<std::string> adapter = {};  // a folder of PEFT's to start from

  double scaling() const;  // alpha / r, or with use_rslora alpha / sqrt(r)

  static Kind<LoraOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct LowPrecisionGroupNormOptions {
  Event apply_at = Event::kInit;

  static Kind<LowPrecisionGroupNormOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct LowPrecisionLayerNormOptions {
  Event apply_at = Event::kInit;

  static Kind<LowPrecisionLayerNormOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct NoOpModelOptions {
  static Kind<NoOpModelOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct SqueezeExciteOptions {
  double latent_channels = 64;
  int64_t min_channels = 128;

  static Kind<SqueezeExciteOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

enum class StochasticMethod { kBlock, kSample };
enum class DropDistribution { kUniform, kLinear };

struct StochasticDepthOptions {
  std::string target_layer_name = "ResNetBottleneck";  // or the kind of any ResidualBlock: "BasicBlock"
  StochasticMethod stochastic_method = StochasticMethod::kBlock;
  double drop_rate = 0.2;  // in [0, 1]
  DropDistribution drop_distribution = DropDistribution::kLinear;
};

struct StochasticDepthAlgorithm : StochasticDepthOptions {
  Time drop_warmup{0.0, TimeUnit::kDuration};

  static Kind<StochasticDepthAlgorithm> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct WeightStandardizationOptions {
  int64_t n_last_layers_ignore = 0;

  static Kind<WeightStandardizationOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

using SurgeryKinds = Kinds<AlibiOptions, BlurPoolOptions, ChannelsLastOptions, FactorizeAlgorithm,
                           GatedLinearUnitsOptions, GhostBatchNormOptions, GyroDropoutOptions, LoraOptions,
                           LowPrecisionGroupNormOptions, LowPrecisionLayerNormOptions, NoOpModelOptions,
                           SqueezeExciteOptions, StochasticDepthAlgorithm, WeightStandardizationOptions>;

}  // namespace tutti
