#include "models/zoo/options.h"

#include <memory>

#include "models/loss_options.h"
#include "models/zoo/activation_names.h"

namespace tutti {
namespace {

constexpr double kWidest = 1e9;  // the product of two widths fits an int64
constexpr double kMostBlocks = 10000;

template <class Options>
Bound<Options> size_option(const char* name, int64_t Options::*member, const char* doc) {
  return option<Options>(name, member, doc).at_least(1).at_most(kWidest);
}

template <class Options>
Bound<Options> probability(const char* name, double Options::*member, const char* doc) {
  return option<Options>(name, member, doc).at_least(0).less_than(1);
}

template <class Options>
Bound<Options> channels_option() {
  return size_option<Options>("in_channels", &Options::in_channels,
                              "channels of an image; from the data when absent")
      .may_be_absent();
}

template <class Options>
Bound<Options> classes_option() {
  return size_option<Options>("num_classes", &Options::num_classes,
                              "number of classes, or of targets a sample; from the data when absent")
      .also_named({"num_labels", "num_outputs"})
      .may_be_absent();
}

template <class Options>
std::vector<Bound<Options>> bert_options() {
  return {
      size_option<Options>("vocab_size", &Options::vocab_size, "tokens in the vocabulary"),
      size_option<Options>("hidden_size", &Options::hidden_size, "width of the model"),
      option<Options>("num_hidden_layers", &Options::num_hidden_layers, "blocks")
          .at_least(1)
          .at_most(kMostBlocks),
      size_option<Options>("num_attention_heads", &Options::num_attention_heads,
                           "attention heads; they divide hidden_size"),
      size_option<Options>("intermediate_size", &Options::intermediate_size,
                           "width of the feed-forward blocks"),
      option<Options>("hidden_act", &Options::hidden_act,
                      "activation; gelu is exact, gelu_tanh (or gelu_new) its approximation")
          .one_of(activation_names()),
      probability<Options>("hidden_dropout_prob", &Options::hidden_dropout_prob,
                           "dropout of embeddings and residual branches"),
      probability<Options>("attention_probs_dropout_prob", &Options::attention_probs_dropout_prob,
                           "dropout of attention probabilities"),
      size_option<Options>("max_position_embeddings", &Options::max_position_embeddings, "longest sequence")
          .also_named({"max_sequence_length", "max_seq_len"}),
      size_option<Options>("type_vocab_size", &Options::type_vocab_size, "token types (segments)"),
      option<Options>("initializer_range", &Options::initializer_range,
                      "standard deviation of initial weights")
          .at_least(0),
      option<Options>("layer_norm_eps", &Options::layer_norm_eps, "added to variances").more_than(0),
      option<Options>("pad_token_id", &Options::pad_token_id,
                      "token of padding, whose embedding is not trained by lookups")
          .at_least(0)};
}

Catalog output_losses() {
  return {.section = "model.losses",
          .noun = "output_loss",
          .doc =
              "The losses of a model with several outputs, whose weighted sum is trained. Each is logged as "
              "loss/train/NAME and metrics/LABEL/loss/NAME, without its weight.",
          .keys = {{"output", KeyType::kText, "none",
                    "the output, by its key, or its index in a tuple from \"0\"; when absent the only one"},
                   {"target", KeyType::kText, "none",
                    "the array that it is compared with; when absent the one with the output's name, or "
                    "\"target\" if there is none"},
                   Key{"loss", KeyType::kKindOrTable, "none",
                       "cross_entropy when absent; own: the output is the loss already, the mean of the "
                       "samples or a number for each"}
                       .each(std::make_shared<const Catalog>(loss_catalog()))
                       .or_word("own"),
                   {"weight", KeyType::kNumber, "1.0", "the factor of the loss in the sum"},
                   {"name", KeyType::kText, "none",
                    "NAME in the log; when absent the output's, with the loss's behind it if several losses "
                    "are of one output"}}};
}

template <class Options>
std::vector<Bound<Options>> program_options(const char* file) {
  return {
      option<Options>("path", &Options::path, file).as(KeyType::kPath).required(),
      option<Options>("inputs", &Options::inputs,
                      "arrays of the data, in the order of forward's arguments; when absent \"input\" "
                      "for one argument, else those with the arguments' names"),
      option<Options>("prediction", &Options::prediction,
                      "the output that has the scores: a key, or an index from \"0\"; when absent the "
                      "only one, or \"logits\"")
          .may_be_absent(),
      option<Options>("loss_output", &Options::loss_output,
                      "the output that is the mean loss of the samples, if the program computes it; when "
                      "absent, loss does")
          .may_be_absent(),
      option<Options>("losses", &Options::losses,
                      "[[model.losses]]: of several outputs, each with a target, loss and weight, in place "
                      "of prediction, loss_output and loss")
          .each(std::make_shared<const Catalog>(output_losses()))
          .as(KeyType::kTables)};
}

Catalog rope_scalings() {
  return {
      .section = "model.rope_scaling",
      .noun = "rope_scaling",
      .doc =
          "Rotary positions for sequences longer than those of the pretraining, as transformers scales "
          "them.",
      .keys = {
          Key{"rope_type", KeyType::kText, "default", "the scaling"}.also_named({"type"}).one_of(
              {"default", "linear", "dynamic", "llama3", "yarn"}),
          Key{"rope_theta", KeyType::kNumber, "none", "in place of model.rope_theta"}.more_than(1),
          Key{"factor", KeyType::kNumber, "none", "how much longer; of all types but the default"}.at_least(
              1),
          Key{"original_max_position_embeddings", KeyType::kInteger, "none",
              "longest sequence of the pretraining, of llama3 and yarn; when absent "
              "max_position_embeddings"}
              .at_least(1),
          Key{"low_freq_factor", KeyType::kNumber, "none", "of llama3"}.more_than(0),
          Key{"high_freq_factor", KeyType::kNumber, "none", "of llama3"}.more_than(0),
          Key{"attention_factor", KeyType::kNumber, "none",
              "of yarn: of cosines and sines; by the factor when absent"}
              .more_than(0),
          Key{"beta_fast", KeyType::kNumber, "none", "of yarn; 32 when absent"}.more_than(0),
          Key{"beta_slow", KeyType::kNumber, "none", "of yarn; 1 when absent"}.more_than(0),
          Key{"mscale", KeyType::kNumber, "none", "of yarn"},
          Key{"mscale_all_dim", KeyType::kNumber, "none", "of yarn"},
          Key{"truncate", KeyType::kBoolean, "true", "of yarn: its range begins and ends at whole numbers"},
      }};
}

}  // namespace

Kind<MlpOptions> MlpOptions::kind() {
  using Options = MlpOptions;
  return {"mlp",
          "Fully connected layers with an activation between them.",
          {option("hidden", &Options::hidden, "widths of the hidden layers").at_least(1).at_most(kWidest),
           size_option<Options>("in_features", &Options::in_features,
                                "width of a flattened sample; from the data when absent")
               .may_be_absent(),
           classes_option<Options>(),
           option("activation", &Options::activation,
                  "between the layers; gelu is exact, gelu_tanh (or gelu_new) its approximation")
               .one_of(activation_names())}};
}

Kind<ResNetOptions> ResNetOptions::kind() {
  using Options = ResNetOptions;
  return {"resnet",
          "The residual networks for large images of He et al., 2015, as torchvision has them.",
          {option("depth", &Options::depth, "layers").one_of({"18", "34", "50", "101", "152"}),
           option("width", &Options::width, "channels of the stem; torchvision's networks have 64")
               .at_least(1)
               .at_most(1e5),
           option("small_images", &Options::small_images,
                  "a stem for images of 32 or 64 pixels: a 3x3 convolution that keeps their size, and no max "
                  "pooling"),
           channels_option<Options>(), classes_option<Options>()}};
}

Kind<ResNetCifarOptions> ResNetCifarOptions::kind() {
  using Options = ResNetCifarOptions;
  return {"resnet_cifar",
          "The residual network for small images of He et al., 2015, section 4.2.",
          {option("depth", &Options::depth, "layers").one_of({"20", "32", "44", "56", "110"}),
           size_option<Options>("width", &Options::width,
                                "channels of the first stage; each next one has twice as many"),
           channels_option<Options>(), classes_option<Options>()}};
}

Kind<VitOptions> VitOptions::kind() {
  using Options = VitOptions;
  return {"vit",
          "The vision transformer of Dosovitskiy et al., 2020, as torchvision has it; by default ViT-B/16.",
          {size_option<Options>("image_size", &Options::image_size,
                                "pixels of a side of the images; from the data when absent")
               .may_be_absent(),
           size_option<Options>("patch_size", &Options::patch_size,
                                "pixels of a side of a patch; a divisor of the images'"),
           option("num_layers", &Options::num_layers, "blocks").at_least(1).at_most(kMostBlocks),
           size_option<Options>("num_heads", &Options::num_heads, "attention heads; they divide hidden_dim"),
           size_option<Options>("hidden_dim", &Options::hidden_dim, "width of the model"),
           size_option<Options>("mlp_dim", &Options::mlp_dim, "width of the feed-forward blocks"),
           probability<Options>("dropout", &Options::dropout, "dropout of residual branches"),
           probability<Options>("attention_dropout", &Options::attention_dropout,
                                "dropout of attention probabilities"),
           channels_option<Options>(), classes_option<Options>()}};
}

Kind<UnetOptions> UnetOptions::kind() {
  using Options = UnetOptions;
  return {
      "unet",
      "The U-Net of segmentation_models_pytorch over a ResNet: a class, or a label, for each pixel.",
      {option("encoder_name", &Options::encoder_name, "the ResNet")
           .one_of({"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}),
       option("encoder_width", &Options::encoder_width,
              "channels of the ResNet's stem; torchvision's networks have 64")
           .at_least(1)
           .at_most(1e5),
       option("encoder_depth", &Options::encoder_depth,
              "how often the ResNet halves the image, whose sizes are rounded up")
           .at_least(3)
           .at_most(5),
       option("decoder_channels", &Options::decoder_channels,
              "channels of the decoder's blocks, as many as encoder_depth, the smallest image first")
           .at_least(1)
           .at_most(1e5),
       channels_option<Options>(),
       size_option<Options>("classes", &Options::classes,
                            "classes or labels of a pixel; from the data when absent; 1: a mask of zeros and "
                            "ones, for a loss of labels")
           .also_named({"num_classes", "num_labels"})
           .may_be_absent()}};
}

Kind<GptOptions> GptOptions::kind() {
  using Options = GptOptions;
  return {
      "gpt",
      "GPT-2: pre-norm transformer blocks, learned positions, the output tied to the token embedding.",
      {option("vocab_size", &Options::vocab_size, "tokens in the vocabulary; 256 for bytes")
           .at_least(2)
           .at_most(kWidest),
       size_option<Options>("n_positions", &Options::n_positions, "longest sequence")
           .also_named({"max_sequence_length", "max_seq_len", "n_ctx"}),
       size_option<Options>("n_embd", &Options::n_embd, "width of the model").also_named({"d_model"}),
       option("n_layer", &Options::n_layer, "blocks")
           .also_named({"n_layers"})
           .at_least(1)
           .at_most(kMostBlocks),
       size_option<Options>("n_head", &Options::n_head, "attention heads; they divide n_embd")
           .also_named({"n_heads"}),
       probability<Options>("dropout", &Options::dropout, "of embeddings, attention and residual branches")}};
}

Kind<LlamaOptions> LlamaOptions::kind() {
  using Options = LlamaOptions;
  return {
      "llama",
      "The Llama family: Llama 2 and 3, Mistral, Qwen 2 and 3, with transformers' names.",
      {option("model_type", &Options::model_type,
              "qwen2 has biases of queries, keys and values, qwen3 norms of queries and keys")
           .one_of({"llama", "mistral", "qwen2", "qwen3"}),
       size_option<Options>("vocab_size", &Options::vocab_size, "tokens in the vocabulary"),
       size_option<Options>("hidden_size", &Options::hidden_size, "width of the model")
           .also_named({"d_model"}),
       size_option<Options>("intermediate_size", &Options::intermediate_size,
                            "width of the feed-forward blocks"),
       option("num_hidden_layers", &Options::num_hidden_layers, "blocks")
           .also_named({"n_layers"})
           .at_least(1)
           .at_most(kMostBlocks),
       size_option<Options>("num_attention_heads", &Options::num_attention_heads, "attention heads")
           .also_named({"n_heads"}),
       option("num_key_value_heads", &Options::num_key_value_heads,
              "heads of keys and values, which divide the attention heads; when absent as many")
           .at_least(1),
       option("head_dim", &Options::head_dim,
              "width of a head, even; hidden_size / num_attention_heads when absent")
           .at_least(2)
           .at_most(kWidest),
       option("hidden_act", &Options::hidden_act,
              "activation of the gate; gelu is exact, gelu_tanh (or gelu_new) its approximation")
           .one_of(activation_names()),
       size_option<Options>("max_position_embeddings", &Options::max_position_embeddings,
                            "longest sequence of the pretraining; longer ones are not refused")
           .also_named({"max_sequence_length", "max_seq_len"}),
       option("initializer_range", &Options::initializer_range, "standard deviation of initial weights")
           .at_least(0),
       option("rms_norm_eps", &Options::rms_norm_eps, "added to mean squares").more_than(0),
       option("tie_word_embeddings", &Options::tie_word_embeddings,
              "the token embeddings are the output layer's weights, too"),
       option("attention_bias", &Options::attention_bias,
              "biases of all projections of attention (llama, qwen3)"),
       probability<Options>("attention_dropout", &Options::attention_dropout,
                            "dropout of attention probabilities"),
       option("mlp_bias", &Options::mlp_bias, "biases of the feed-forward blocks (llama)"),
       option("pad_token_id", &Options::pad_token_id,
              "token of padding, whose embedding is not trained by lookups")
           .at_least(0),
       option("sliding_window", &Options::sliding_window,
              "tokens that a token sees, itself included (mistral, qwen2, qwen3); all before it when absent")
           .at_least(1),
       option("layer_types", &Options::layer_types,
              "\"full_attention\" or \"sliding_attention\" for each block; when absent all slide if there is "
              "a sliding_window")
           .may_be_absent(),
       option("rope_theta", &Options::rope_theta, "longest wavelength of the rotary positions, over 2 pi")
           .more_than(1),
       option("rope_scaling", &Options::rope_scaling,
              "{ rope_type = \"llama3\", factor = 8.0, ... }: scaled rotary positions")
           .also_named({"rope_parameters"})
           .each(std::make_shared<const Catalog>(rope_scalings()))
           .as(KeyType::kTable)}};
}

int64_t LlamaOptions::window_of(int64_t layer) const {
  if (!sliding_window) return 0;
  if (layer_types.empty()) return *sliding_window;
  return layer_types.at(static_cast<std::size_t>(layer)) == "sliding_attention" ? *sliding_window : 0;
}

Kind<BertMlmOptions> BertMlmOptions::kind() {
  return {"bert_mlm",
          "BERT for masked language modelling: of tokens with the transform mask_tokens, or of arrays "
          "'input_ids' and 'labels'; 'attention_mask' and 'token_type_ids' may be there too.",
          bert_options<BertMlmOptions>()};
}

Kind<BertClassificationOptions> BertClassificationOptions::kind() {
  using Options = BertClassificationOptions;
  return {"bert_classification",
          "BERT for whole sequences: reads the arrays of bert_mlm, and as labels a class, or what the loss "
          "takes, several labels or values.",
          with_keys<Options>(bert_options<Options>(),
                             {size_option<Options>("num_classes", &Options::num_classes,
                                                   "number of classes, or of targets a sample; when absent "
                                                   "from the data, or 2")
                                  .also_named({"num_labels"})
                                  .may_be_absent(),
                              option("classifier_dropout", &Options::classifier_dropout,
                                     "before the classifier; default: hidden_dropout_prob")
                                  .at_least(0)
                                  .less_than(1)})};
}

Kind<BertContrastiveOptions> BertContrastiveOptions::kind() {
  using Options = BertContrastiveOptions;
  return {
      "bert_contrastive",
      "BERT as an encoder of texts, trained to find the 'positive_ids' of each 'input_ids' among those of "
      "the whole batch, of all ranks and microbatches; arrays 'negative_ids', 'attention_mask', "
      "'positive_attention_mask' and 'negative_attention_mask' may be there too.",
      with_keys<Options>(
          bert_options<Options>(),
          {option("pooling", &Options::pooling,
                  "the embedding of a text, whose length is 1: of the mean of its tokens' states, or of that "
                  "of the first token",
                  {{"mean", BertPooling::kMean}, {"cls", BertPooling::kCls}}),
           option("temperature", &Options::temperature,
                  "divides the similarities (cosines); 1 / scale of sentence-transformers")
               .more_than(0),
           option("symmetric", &Options::symmetric,
                  "true: the mean of two losses, the other one of finding the text of each positive"),
           option("simcse", &Options::simcse,
                  "true: each text is its own positive, encoded twice under dropout; there are no "
                  "'positive_ids'")})};
}

Kind<DiffusionUnetOptions> DiffusionUnetOptions::kind() {
  using Options = DiffusionUnetOptions;
  return {
      "diffusion_unet",
      "A diffusion model (Ho et al., 2020): diffusers' UNet2DModel, trained to take away the noise of its "
      "DDPMScheduler. Images are scaled to [-1, 1]; `tutti generate` draws new ones.",
      with_keys<Options>(
          {size_option<Options>("sample_size", &Options::sample_size, "pixels of a side of the images")
               .required(),
           channels_option<Options>(),
           option("out_channels", &Options::out_channels, "as in_channels").at_least(1).at_most(kWidest),
           option("block_out_channels", &Options::block_out_channels, "channels of each size of the images")
               .at_least(1)
               .at_most(kWidest),
           option("down_block_types", &Options::down_block_types,
                  "of each size: DownBlock2D, or AttnDownBlock2D with attention"),
           option("up_block_types", &Options::up_block_types,
                  "of each size, the smallest first: UpBlock2D, or AttnUpBlock2D with attention"),
           option("layers_per_block", &Options::layers_per_block, "residual blocks of each size")
               .at_least(1)
               .at_most(kMostBlocks),
           option("add_attention", &Options::add_attention, "attention in the middle block"),
           option("attention_head_dim", &Options::attention_head_dim, "features of a head; 0: one head")
               .at_least(0)
               .at_most(kWidest),
           size_option<Options>("norm_num_groups", &Options::norm_num_groups,
                                "groups of group norm; they divide the channels"),
           option("norm_eps", &Options::norm_eps, "added to variances").more_than(0),
           option("act_fn", &Options::act_fn, "activation").one_of({"silu", "swish", "gelu", "relu"}),
           probability<Options>("dropout", &Options::dropout, "dropout of residual branches"),
           option("resnet_time_scale_shift", &Options::resnet_time_scale_shift,
                  "how the timestep acts in residual blocks: it is added, or scales and shifts")
               .one_of({"default", "scale_shift"}),
           option("mid_block_scale_factor", &Options::mid_block_scale_factor,
                  "outputs in the middle block are divided by this")
               .more_than(0)
               .written("1.0"),
           option("downsample_padding", &Options::downsample_padding,
                  "zeros around what is halved; 0: at the ends alone")
               .at_least(0)
               .at_most(1),
           option("flip_sin_to_cos", &Options::flip_sin_to_cos, "the timestep's cosines come first"),
           option("freq_shift", &Options::freq_shift, "taken from the number of the timestep's frequencies")
               .at_least(0),
           option("center_input_sample", &Options::center_input_sample,
                  "noisy images become 2 x - 1 before they are looked at")},
          noise_keys<Options>())};
}

Kind<ExportedOptions> ExportedOptions::kind() {
  using Options = ExportedOptions;
  return {"exported",
          "A model written in Python: a program of torch.export (PyTorch 2.9 to 2.15), with its weights; "
          "for classification, or with losses of its own.",
          program_options<Options>("a .pt2 file of torch.export.save")};
}

Kind<ScriptOptions> ScriptOptions::kind() {
  using Options = ScriptOptions;
  return {
      "torchscript",
      "A model written in Python: a module of TorchScript (torch.jit.script or torch.jit.trace), with its "
      "weights; for classification, or with losses of its own.",
      program_options<Options>("a file of torch.jit.save")};
}

Kind<SequentialOptions> SequentialOptions::kind() {
  return {
      "sequential",
      "Layers one after another, described as PyTorch prints them.",
      {option("layers", &SequentialOptions::layers,
              "for example [\"Flatten()\", \"Linear(28*28, 32)\", \"ReLU()\", \"Linear(32, 10)\"]; there are "
              "Linear, Conv1d, Conv2d, Conv3d, ConvTranspose2d, BatchNorm1d, BatchNorm2d, BatchNorm3d, "
              "LayerNorm, "
              "GroupNorm, RMSNorm, ReLU, LeakyReLU, GELU, SiLU, Sigmoid, Tanh, Softmax, Identity, Flatten, "
              "MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Upsample, Dropout, Embedding, LSTM, GRU, Select(dim, "
              "index), and of layers Sequential(A, B), Residual(A, B, shortcut=C), Concat(A, B, dim=1)")
           .required()}};
}

}  // namespace tutti
