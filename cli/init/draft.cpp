#include "cli/init/draft.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr int64_t kLargestBatch = 128, kLargestTokenBatch = 16, kLargestPictureBatch = 32, kLeastBatch = 4;
constexpr int64_t kStepsAnEpoch = 20;  // at least, if there are samples for it
constexpr int64_t kSteps = 3000;       // of the whole training, about
constexpr int64_t kSmallestImage = 16, kLargestSmallImage = 96;
constexpr std::size_t kWidestColumn = 56;

bool is_gpt(const FoundData& data) { return data.samples == SampleKind::kTokens; }

bool is_bert(const FoundData& data) {
  return data.samples == SampleKind::kMaskedTokens || data.samples == SampleKind::kTextClasses;
}

// A network of convolutions takes images with channels; bytes get theirs when they become floats.
bool is_resnet(const FoundData& data) {
  const bool has_channels = data.bytes || data.channels > 0;
  return data.samples == SampleKind::kImages && has_channels &&
         std::min(data.height, data.width) >= kSmallestImage;
}

bool are_pictures(const FoundData& data) {
  return is_resnet(data) && std::max(data.height, data.width) > kLargestSmallImage;
}

int64_t batch_size(const FoundData& data) {
  int64_t batch = is_gpt(data)                          ? kLargestTokenBatch
                  : are_pictures(data) || is_bert(data) ? kLargestPictureBatch
                                                        : kLargestBatch;
  while (batch > kLeastBatch && data.count / batch < kStepsAnEpoch) batch /= 2;
  return batch;
}

int64_t steps_an_epoch(const FoundData& data) {
  return std::max<int64_t>(1, (data.count + batch_size(data) - 1) / batch_size(data));
}

std::string number(double value) {
  std::ostringstream out;
  out << value;
  const std::string text = out.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + number(value);
  return values.size() == 1 ? text : '[' + text + ']';
}

// Names and paths in a comment stay on its line.
std::string comment_text(const std::string& comment) { return "# " + on_one_line(comment); }

std::string lines_text(const RecipeLines& lines) {
  std::size_t width = 0;
  for (const auto& line : lines)
    if (!line.comment.empty()) width = std::max(width, line.key.size() + line.value.size() + 3);
  width = std::min(width, kWidestColumn);
  std::string out;
  for (const auto& [key, value, comment] : lines) {
    std::string text = key + " = " + value;
    if (!comment.empty())
      text += std::string(text.size() < width ? width - text.size() : 0, ' ') + "  " + comment_text(comment);
    out += text + '\n';
  }
  return out;
}

std::string section(const std::string& heading, const RecipeLines& lines) {
  return '\n' + heading + '\n' + lines_text(lines);
}

RecipeLine vocabulary_line(const FoundData& data) {
  return {"vocab_size", std::to_string(data.vocabulary), "tokens of the data are below"};
}

RecipeLines gpt_lines(const FoundData& data) {
  RecipeLines lines = {
      {"kind", "\"gpt\"", "a small transformer that predicts the next token"},
      {"n_layer", "4", "blocks"},
      {"n_embd", "128", "width"},
      {"n_head", "4", "attention heads; they divide n_embd"},
      {"n_positions", std::to_string(data.sequence_length), "longest sequence: that of the data"}};
  if (data.vocabulary > 0) lines.push_back(vocabulary_line(data));
  return lines;
}

RecipeLines bert_lines(const FoundData& data) {
  const bool classes = data.samples == SampleKind::kTextClasses;
  RecipeLines lines = {
      {"kind", classes ? "\"bert_classification\"" : "\"bert_mlm\"",
       !classes          ? "masked tokens, which labels of -100 are not"
       : data.regression ? "a number for each sequence"
                         : "a class for each sequence"},
      {"num_hidden_layers", "4", "blocks; BERT has 12"},
      {"hidden_size", "128", "width; BERT has 768"},
      {"num_attention_heads", "4", "attention heads; they divide hidden_size"},
      {"intermediate_size", "512", "width of the feed-forward blocks"},
      {"max_position_embeddings", std::to_string(data.sequence_length), "longest sequence: that of the data"},
      vocabulary_line(data)};
  if (classes && !data.regression)
    lines.push_back({"num_classes", std::to_string(data.classes), "labels of the data are below"});
  return lines;
}

RecipeLines network_lines(const FoundData& data) {
  if (!data.program.empty())
    return {{"kind", data.program.ends_with(".pt2\"") ? "\"exported\"" : "\"torchscript\"",
             "written by Python: docs/your_model.md"},
            {"path", data.program, "relative to this file"}};
  if (is_gpt(data)) return gpt_lines(data);
  if (is_bert(data)) return bert_lines(data);
  if (are_pictures(data))
    return {{"kind", "\"resnet\"", "for large images; channels and classes come from the data"},
            {"depth", "18", "layers: 18, 34, 50, 101 or 152"}};
  if (is_resnet(data))
    return {{"kind", "\"resnet_cifar\"", "for small images; channels and classes come from the data"},
            {"depth", "20", "layers: 20, 32, 44, 56 or 110"}};
  return {{"kind", "\"mlp\"", "fully connected layers; inputs and classes come from the data"},
          {"hidden", "[128, 64]", "widths of the hidden layers"}};
}

RecipeLines model_lines(const FoundData& data) {
  RecipeLines lines = network_lines(data);
  if (data.regression) lines.push_back({"loss", "\"mse\"", "the target is a number"});
  if (data.ignored)
    lines.push_back({"ignore_index", std::to_string(*data.ignored), "targets with this label do not count"});
  return lines;
}

// Converts stored numbers into the floats that models take.
RecipeLines number_lines(const FoundData& data) {
  RecipeLines lines;
  if (is_gpt(data) || is_bert(data)) return lines;
  if (data.channels > 0 && (data.channels_last || data.bytes))
    lines.push_back(
        {"layout", data.channels_last ? "\"NHWC\"" : "\"NCHW\"", "the order of dimensions in the file"});
  if (!data.mean.empty()) {
    lines.push_back(
        {"mean", numbers(data.mean), "of each channel, in [0, 1]: bytes are divided by 255 first"});
    lines.push_back({"std", numbers(data.std), "input = (byte / 255 - mean) / std"});
  } else if (data.bytes) {
    lines.push_back({"scale", "0.00392157", "bytes become numbers in [0, 1]"});
  } else if (data.integers) {
    lines.push_back({"scale", "1", "integers become floats; mean and std may follow"});
  }
  return lines;
}

RecipeLines train_lines(const FoundData& data) {
  RecipeLines lines = data.train;
  for (auto& line : number_lines(data)) lines.push_back(std::move(line));
  lines.push_back({"batch_size", std::to_string(batch_size(data)),
                   "of all ranks together: " + std::to_string(steps_an_epoch(data)) + " steps an epoch"});
  lines.push_back({"shuffle", "true", "a new order in each epoch, drawn from the seed"});
  if (is_resnet(data)) lines.push_back({"num_workers", "2", "threads that read and transform samples"});
  return lines;
}

// `part`: "train" or "eval"
std::string next_token(const FoundData& data, const std::string& part) {
  if (!data.copied) return "";
  return section(
      "[[data." + part + ".transforms]]",
      {{"kind", "\"next_token\"", "a token's target is the next one; here it is the token itself"}});
}

// One number for a square.
std::string image_size(int64_t height, int64_t width) {
  const std::string rows = std::to_string(height);
  return height == width ? rows : '[' + rows + ", " + std::to_string(width) + ']';
}

// Of images of many sizes, which get one.
std::string train_transforms_of_files(const FoundData& data) {
  return section("[[data.train.transforms]]", {{"kind", "\"random_resized_crop\"",
                                                "a drawn part of each image, resized; all get one size"},
                                               {"size", image_size(data.height, data.width)}}) +
         section("[[data.train.transforms]]", {{"kind", "\"flip\"", "half of the images are mirrored"}});
}

std::string eval_transforms_of_files(const FoundData& data) {
  return section(
             "[[data.eval.transforms]]",
             {{"kind", "\"resize\""},
              {"size", std::to_string(std::max(data.height, data.width) * 8 / 7), "of the smaller edge"}}) +
         section("[[data.eval.transforms]]",
                 {{"kind", "\"center_crop\"", "its middle"}, {"size", image_size(data.height, data.width)}});
}

std::string transforms(const FoundData& data) {
  if (data.files) return train_transforms_of_files(data);
  if (!data.may_flip) return next_token(data, "train");
  return section("[[data.train.transforms]]",
                 {{"kind", "\"random_crop\"", "a part of each image, at a drawn place"},
                  {"size", std::to_string(data.height)},
                  {"padding", "4"}}) +
         section("[[data.train.transforms]]", {{"kind", "\"flip\"", "half of the images are mirrored"}});
}

std::string eval_text(const FoundData& data) {
  if (data.eval.empty())
    return "\n# There was nothing to evaluate on. A [data.eval] with a file or group of its own goes here:\n"
           "# then the loss and accuracy on it are reported after every epoch.\n";
  RecipeLines lines = data.eval;
  for (const auto& line : number_lines(data)) lines.push_back({line.key, line.value, "as in training"});
  if (is_gpt(data)) lines.push_back({"subset_num_batches", "50", "an evaluation is at most so long"});
  return section("[data.eval]", lines) +
         (data.files ? eval_transforms_of_files(data) : next_token(data, "eval"));
}

RecipeLines optimizer_lines(const FoundData& data) {
  if (is_resnet(data) && data.program.empty())
    return {{"kind", "\"sgd\"", "`tutti list optimizers` shows others"},
            {"lr", number(0.1 * static_cast<double>(batch_size(data)) / kLargestBatch),
             "learning rate; goes with the batch size"},
            {"momentum", "0.9"},
            {"weight_decay", "5e-4"}};
  RecipeLines lines = {{"kind", "\"adamw\"", "`tutti list optimizers` shows others"},
                       {"lr", "1e-3", "learning rate: try other values of this key first"},
                       {"weight_decay", is_gpt(data) ? "0.1" : "0.01"}};
  if (is_gpt(data) && data.program.empty())
    lines.push_back({"no_decay", "[\"*.bias\", \"*.ln_*\", \"*wpe*\"]", "by name"});
  return lines;
}

bool is_counted_in_steps(const FoundData& data) {
  return is_gpt(data) && steps_an_epoch(data) >= kSteps / 30;
}

RecipeLines train_section(const FoundData& data) {
  if (is_counted_in_steps(data))
    return {{"max_duration", "\"1000ba\"", "steps; also ep (epochs), tok, \"1h30m\""},
            {"eval_interval", "\"250ba\"", "how often to evaluate on [data.eval]"}};
  const int64_t most = is_resnet(data) ? 20 : 30;
  const int64_t epochs = std::clamp<int64_t>(kSteps / steps_an_epoch(data), 5, most);
  return {{"max_duration", '"' + std::to_string(epochs) + "ep\"",
           "epochs; also ba (steps), sp (samples), \"1h30m\""}};
}

std::string run_name(const std::string& name) {
  std::string plain;
  for (const char c : name)
    plain += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
  return plain.empty() ? "run" : plain;
}

}  // namespace

std::string draft_recipe(const FoundData& data, const std::string& command, const std::string& schema) {
  std::string out = schema.empty() ? "" : "#:schema " + on_one_line(schema) + "\n";
  out += comment_text("Written by `" + command + "`, which found") + '\n' + comment_text(data.found + '.') +
         "\n# `tutti explain KEY` says what a key means and what else it can be.\n";
  out += lines_text({{"run_name", toml_text(run_name(data.name)), "names the folder of the run, below runs/"},
                     {"seed", "17", "of all random numbers: the same seed gives the same bits"}});
  out += section("[model]", model_lines(data));
  out += section("[data.train]", train_lines(data)) + transforms(data) + eval_text(data);
  out += section("[optimizer]", optimizer_lines(data));
  out += section("[scheduler]",
                 {{"kind", "\"cosine_annealing_with_warmup\"", "the learning rate rises, then falls"},
                  {"t_warmup", "\"0.05dur\"", "the first twentieth of the training"}});
  out += section("[train]", train_section(data));
  out +=
      section("[checkpoint]", {{"interval", is_counted_in_steps(data) ? "\"250ba\"" : "\"1ep\"", "how often"},
                               {"keep", "2", "the newest; older ones are removed"}});
  return out;
}

}  // namespace tutti
