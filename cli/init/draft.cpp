#include "cli/init/draft.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cli/init/network.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kLargestBatch = 128, kLargestTokenBatch = 16, kLargestPictureBatch = 32, kLeastBatch = 4;
constexpr int64_t kStepsAnEpoch = 20;  // at least, if there are samples for it
constexpr int64_t kSteps = 3000;       // of the whole training, about
constexpr int64_t kFewestToSplit = 10;
constexpr std::size_t kWidestColumn = 56;

bool is_gpt(const Proposal& data) { return samples_of<TokenSamples>(data); }

bool is_bert(const Proposal& data) {
  return samples_of<MaskedTokenSamples>(data) || samples_of<TextSamples>(data);
}

// Without other data a tenth of the samples is held out, if there are enough.
bool has_split(const Proposal& data) { return data.eval.empty() && data.count >= kFewestToSplit; }

bool has_evaluation(const Proposal& data) { return !data.eval.empty() || has_split(data); }

int64_t trained_samples(const Proposal& data) {
  return has_split(data) ? data.count - (data.count + 5) / 10 : data.count;
}

int64_t batch_size(const Proposal& data) {
  int64_t batch = is_gpt(data)                          ? kLargestTokenBatch
                  : are_pictures(data) || is_bert(data) ? kLargestPictureBatch
                                                        : kLargestBatch;
  while (batch > kLeastBatch && trained_samples(data) / batch < kStepsAnEpoch) batch /= 2;
  return batch;
}

int64_t steps_an_epoch(const Proposal& data) {
  return std::max<int64_t>(1, (trained_samples(data) + batch_size(data) - 1) / batch_size(data));
}

// Names and paths in a comment stay on its line.
std::string comment_text(const std::string& comment) { return "# " + on_one_line(comment); }

std::string lines_text(const RecipeLines& lines) {
  std::size_t width = 0;
  for (const auto& line : lines)
    if (!line.comment.empty()) width = std::max(width, line.key.size() + line.value.size() + 3);
  width = std::min(width, kWidestColumn);
  std::string out;
  for (const auto& [key, value, comment, is_path] : lines) {
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

RecipeLines program_lines(const std::string& program) {
  return {{"kind", program.ends_with(".pt2\"") ? "\"exported\"" : "\"torchscript\"",
           "written by Python: docs/your_model.md"},
          {"path", program, "relative to this file"}};
}

RecipeLines model_lines(const Proposal& data, const Network& network, const std::string& program) {
  RecipeLines lines = program.empty() ? network.model : program_lines(program);
  lines.insert(lines.end(), data.model.begin(), data.model.end());
  return lines;
}

RecipeLines train_lines(const Proposal& data, int64_t num_workers) {
  RecipeLines lines = data.train;
  lines.insert(lines.end(), data.numbers.begin(), data.numbers.end());
  lines.push_back({"batch_size", std::to_string(batch_size(data)),
                   "of all ranks together: " + std::to_string(steps_an_epoch(data)) + " steps an epoch"});
  lines.push_back({"shuffle", "true", "a new order in each epoch, drawn from the seed"});
  if (num_workers > 0)
    lines.push_back({"num_workers", std::to_string(num_workers), "threads that read and transform samples"});
  return lines;
}

// `part`: "train" or "eval"
std::string next_token(const Proposal& data, const std::string& part) {
  const auto* tokens = samples_of<TokenSamples>(data);
  if (!tokens || !tokens->are_copied) return "";
  return section(
      "[[data." + part + ".transforms]]",
      {{"kind", "\"next_token\"", "a token's target is the next one; here it is the token itself"}});
}

// One number for a square.
std::string image_size(const ImageSamples& images) {
  const std::string rows = std::to_string(images.height);
  return images.height == images.width ? rows : '[' + rows + ", " + std::to_string(images.width) + ']';
}

std::string image_sizes(const ImageSamples& images) {
  return '[' + std::to_string(images.height) + ", " + std::to_string(images.width) + ']';
}

// Of images of many sizes, which get one.
std::string train_transforms_of_files(const ImageSamples& images) {
  const std::string flip =
      section("[[data.train.transforms]]", {{"kind", "\"flip\"", "half of the images are mirrored"}});
  if (images.targets == ImageTargets::kValues)
    return section("[[data.train.transforms]]",
                   {{"kind", "\"resize\"", "the whole image: a part may have other numbers"},
                    {"size", image_sizes(images)}}) +
           flip;
  return section("[[data.train.transforms]]", {{"kind", "\"random_resized_crop\"",
                                                "a drawn part of each image, resized; all get one size"},
                                               {"size", image_size(images)}}) +
         flip;
}

std::string eval_transforms_of_files(const ImageSamples& images) {
  if (images.targets != ImageTargets::kClass)
    return section("[[data.eval.transforms]]",
                   {{"kind", "\"resize\"", "the whole image"}, {"size", image_sizes(images)}});
  return section("[[data.eval.transforms]]",
                 {{"kind", "\"resize\""},
                  {"size", std::to_string(std::max(images.height, images.width) * 8 / 7),
                   "of the smaller edge"}}) +
         section("[[data.eval.transforms]]",
                 {{"kind", "\"center_crop\"", "its middle"}, {"size", image_size(images)}});
}

std::string train_transforms(const Proposal& data) {
  const auto* images = samples_of<ImageSamples>(data);
  if (!images) return next_token(data, "train");
  if (images->are_files) return train_transforms_of_files(*images);
  if (!images->may_flip) return "";
  return section("[[data.train.transforms]]",
                 {{"kind", "\"random_crop\"", "a part of each image, at a drawn place"},
                  {"size", std::to_string(images->height)},
                  {"padding", "4"}}) +
         section("[[data.train.transforms]]", {{"kind", "\"flip\"", "half of the images are mirrored"}});
}

std::string eval_text(const Proposal& data) {
  if (!has_evaluation(data))
    return "\n# There was nothing to evaluate on. A [data.eval] with a file or group of its own goes here:\n"
           "# then the loss and accuracy on it are reported after every epoch.\n";
  RecipeLines lines = data.eval;
  if (has_split(data))
    lines = {{"split", "0.1", "of the samples, which are not trained on; or kind and path of others"}};
  else
    for (const auto& line : data.numbers) lines.push_back({line.key, line.value, "as in training"});
  if (!data.metrics.empty())
    lines.push_back({"metric_names", toml_texts(data.metrics), "`tutti list metrics` shows others"});
  if (is_gpt(data)) lines.push_back({"subset_num_batches", "50", "an evaluation is at most so long"});
  const auto* images = samples_of<ImageSamples>(data);
  return section("[data.eval]", lines) + (images && images->are_files ? eval_transforms_of_files(*images)
                                          : has_split(data)           ? ""
                                                                      : next_token(data, "eval"));
}

RecipeLines optimizer_lines(const Proposal& data, const Network& network, bool has_program) {
  if (network.has_momentum && !has_program)
    return {{"kind", "\"sgd\"", "`tutti list optimizers` shows others"},
            {"lr", toml_number(0.1 * static_cast<double>(batch_size(data)) / kLargestBatch),
             "learning rate; goes with the batch size"},
            {"momentum", "0.9"},
            {"weight_decay", "5e-4"}};
  RecipeLines lines = {{"kind", "\"adamw\"", "`tutti list optimizers` shows others"},
                       {"lr", "1e-3", "learning rate: try other values of this key first"},
                       {"weight_decay", is_gpt(data) ? "0.1" : "0.01"}};
  if (!network.no_decay.empty() && !has_program)
    lines.push_back({"no_decay", toml_texts(network.no_decay), "by name"});
  return lines;
}

bool is_counted_in_steps(const Proposal& data) { return is_gpt(data) && steps_an_epoch(data) >= kSteps / 30; }

RecipeLines train_section(const Proposal& data, const Network& network) {
  if (is_counted_in_steps(data))
    return {{"max_duration", "\"1000ba\"", "steps; also ep (epochs), tok, \"1h30m\""},
            {"eval_interval", "\"250ba\"", "how often to evaluate on [data.eval]"}};
  const int64_t most = network.has_momentum ? 20 : 30;
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

std::string recipe_path(const std::string& path, const std::string& recipe_folder) {
  namespace fs = std::filesystem;
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path relative = whole.lexically_relative(fs::absolute(recipe_folder).lexically_normal());
  const bool is_far = relative.empty() || relative.string().starts_with("../../../");
  std::string text = (is_far ? whole : relative).string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (!is_utf8(text))
    throw UserError({text}, "a recipe cannot name this path, which is not UTF-8; rename it");
  return toml_text(text);
}

Proposal placed(Proposal data, const std::string& recipe_folder) {
  for (RecipeLines* lines : {&data.train, &data.eval})
    for (RecipeLine& line : *lines)
      if (std::exchange(line.is_path, false)) line.value = recipe_path(line.value, recipe_folder);
  return data;
}

std::string draft_recipe(const Proposal& data, const DraftOptions& options) {
  const Network chosen = network(data, options.network);
  std::string out = options.schema.empty() ? "" : "#:schema " + on_one_line(options.schema) + "\n";
  out += comment_text("Written by `" + options.command + "`, which found") + '\n' +
         comment_text(data.summary + '.') +
         "\n# `tutti explain KEY` says what a key means and what else it can be.\n";
  out += lines_text({{"run_name", toml_text(run_name(data.name)), "names the folder of the run, below runs/"},
                     {"seed", "17", "of all random numbers: the same seed gives the same bits"}});
  out += section("[model]", model_lines(data, chosen, options.program));
  out += section("[data.train]", train_lines(data, options.num_workers)) + train_transforms(data) +
         eval_text(data);
  out += section("[optimizer]", optimizer_lines(data, chosen, !options.program.empty()));
  out += section("[scheduler]",
                 {{"kind", "\"cosine_annealing_with_warmup\"", "the learning rate rises, then falls"},
                  {"t_warmup", "\"0.05dur\"", "the first twentieth of the training"}});
  out += section("[train]", train_section(data, chosen));
  RecipeLines checkpoint = {{"interval", is_counted_in_steps(data) ? "\"250ba\"" : "\"1ep\"", "how often"},
                            {"keep", "2", "the newest; older ones are removed"}};
  if (has_evaluation(data))
    checkpoint.push_back({"best", "{ metric = \"eval/loss\" }", "stays too: checkpoints/best leads to it"});
  return out + section("[checkpoint]", checkpoint);
}

}  // namespace tutti
