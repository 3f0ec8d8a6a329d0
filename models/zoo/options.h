#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/diffusion/noise_options.h"
#include "recipe/options.h"

// The kinds of [model]. `make` takes sizes that a recipe leaves out from the samples. Free of libtorch.
namespace tutti {

class Model;
using ModelPtr = std::shared_ptr<Model>;
struct SampleSpec;

struct MlpOptions {
  int64_t in_features = 0;
  std::vector<int64_t> hidden = {128, 64};
  int64_t num_classes = 0;
  std::string activation = "relu";

  static Kind<MlpOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ResNetOptions {
  int64_t depth = 50;  // 18, 34, 50, 101 or 152
  int64_t width = 64;  // channels of the stem; torchvision's is 64
  int64_t in_channels = 3;
  int64_t num_classes = 1000;
  bool small_images = false;  // a 3x3 stem that keeps the size, and no max pooling

  static Kind<ResNetOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ResNetCifarOptions {
  int64_t depth = 20;  // 6 n + 2
  int64_t width = 16;
  int64_t in_channels = 3;
  int64_t num_classes = 10;

  static Kind<ResNetCifarOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Names and defaults of torchvision's VisionTransformer: ViT-B/16.
struct VitOptions {
  int64_t image_size = 224;
  int64_t patch_size = 16;
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t hidden_dim = 768;
  int64_t mlp_dim = 3072;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  int64_t in_channels = 3;
  int64_t num_classes = 1000;

  static Kind<VitOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Names and defaults of segmentation_models_pytorch's Unet over its ResNets.
struct UnetOptions {
  std::string encoder_name = "resnet34";  // or "resnet18", "resnet50", "resnet101", "resnet152"
  int64_t encoder_width = 64;             // ResNetOptions::width
  int64_t encoder_depth = 5;              // halvings of the image
  std::vector<int64_t> decoder_channels = {256, 128, 64, 32, 16};
  int64_t in_channels = 3;
  int64_t classes = 1;

  static Kind<UnetOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct GptOptions {
  int64_t vocab_size = 256;
  int64_t n_positions = 256;
  int64_t n_embd = 256;
  int64_t n_layer = 4;
  int64_t n_head = 4;
  double dropout = 0.0;

  static Kind<GptOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Names and defaults of transformers' LlamaConfig, MistralConfig, Qwen2Config and Qwen3Config.
struct LlamaOptions {
  std::string model_type = "llama";  // or "mistral", "qwen2", "qwen3"
  int64_t vocab_size = 32000;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 11008;
  int64_t num_hidden_layers = 32;
  int64_t num_attention_heads = 32;
  std::optional<int64_t> num_key_value_heads = {};  // default: num_attention_heads
  std::optional<int64_t> head_dim = {};             // default: hidden_size / num_attention_heads
  std::string hidden_act = "silu";                  // make_activation (models/layers/activation.h)
  int64_t max_position_embeddings = 2048;
  double initializer_range = 0.02;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // llama: of all projections; qwen3: too; qwen2 has biases of its own
  double attention_dropout = 0.0;
  bool mlp_bias = false;
  std::optional<int64_t> pad_token_id = {};
  std::optional<int64_t> sliding_window = {};
  std::vector<std::string> layer_types = {};  // "full_attention" or "sliding_attention"; empty: see window_of
  double rope_theta = 10000.0;
  Setting rope_scaling = {};  // a table, or none

  int64_t key_value_heads() const { return num_key_value_heads.value_or(num_attention_heads); }
  int64_t head_features() const { return head_dim.value_or(hidden_size / num_attention_heads); }
  int64_t window_of(int64_t layer) const;  // the sliding window of a layer; 0: none

  static Kind<LlamaOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Names and defaults of transformers' BertConfig: bert-base-uncased.
struct BertOptions {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";  // make_activation (models/layers/activation.h)
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  int64_t pad_token_id = 0;
};

struct BertMlmOptions : BertOptions {
  static Kind<BertMlmOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct BertClassificationOptions : BertOptions {
  int64_t num_classes = 0;
  std::optional<double> classifier_dropout = {};  // default: hidden_dropout_prob

  static Kind<BertClassificationOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

enum class BertPooling { kMean, kCls };

// Defaults of sentence-transformers' MultipleNegativesRankingLoss.
struct BertContrastiveOptions : BertOptions {
  BertPooling pooling = BertPooling::kMean;
  double temperature = 0.05;
  bool symmetric = false;
  bool simcse = false;  // each text is its own positive, by other masks of dropout

  static Kind<BertContrastiveOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Names and defaults of diffusers' UNet2DModel, and of its noise.
struct DiffusionUnetOptions : NoiseOptions {
  int64_t sample_size = 0;
  int64_t in_channels = 3;
  std::optional<int64_t> out_channels = {};  // as in_channels
  bool center_input_sample = false;
  bool flip_sin_to_cos = true;
  double freq_shift = 0;
  std::vector<std::string> down_block_types = {"DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D",
                                               "AttnDownBlock2D"};
  std::vector<std::string> up_block_types = {"AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"};
  std::vector<int64_t> block_out_channels = {224, 448, 672, 896};
  int64_t layers_per_block = 2;
  double mid_block_scale_factor = 1.0;
  int64_t downsample_padding = 1;
  double dropout = 0.0;
  std::string act_fn = "silu";
  int64_t attention_head_dim = 8;  // 0: one head
  int64_t norm_num_groups = 32;
  double norm_eps = 1e-5;
  std::string resnet_time_scale_shift = "default";  // or "scale_shift"
  bool add_attention = true;

  static Kind<DiffusionUnetOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct SequentialOptions {
  std::vector<std::string> layers = {};  // models/zoo/layer_text.h

  static Kind<SequentialOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ExportedOptions {
  std::string path;                      // a file of torch.export.save
  std::vector<std::string> inputs = {};  // arrays of a batch, in the order of forward's arguments
  std::string prediction = {};           // the output with scores, by its name
  std::string loss_output = {};          // the output that is the mean loss; "": as [model] loss
  Setting losses = {};                   // of several outputs, in place of the two and of [model] loss

  static Kind<ExportedOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ScriptOptions {
  std::string path;  // a file of torch.jit.save; the other keys as for ExportedOptions
  std::vector<std::string> inputs = {};
  std::string prediction = {};
  std::string loss_output = {};
  Setting losses = {};

  static Kind<ScriptOptions> kind();
  ModelPtr make(const Setting& section, const SampleSpec& samples) const;
};

using ModelKinds = Kinds<MlpOptions, ResNetOptions, ResNetCifarOptions, VitOptions, UnetOptions, GptOptions,
                         LlamaOptions, BertMlmOptions, BertClassificationOptions, BertContrastiveOptions,
                         DiffusionUnetOptions, SequentialOptions, ExportedOptions, ScriptOptions>;

}  // namespace tutti
