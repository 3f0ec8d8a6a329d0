#include "commands/generate.h"

#include <ATen/ATen.h>

#include <sstream>

#include "commands/loaded_model.h"
#include "commands/prediction_job.h"
#include "data/readers/make_dataset.h"
#include "io/json/json_line.h"
#include "recipe/catalog.h"
#include "training/callbacks/samples/generate.h"
#include "training/token_text.h"

namespace tutti {
namespace {

Setting word(const std::string& value) { return {value, "PROMPT", {"command line"}}; }

[[noreturn]] void refuse_model(const Setting& prompt, const std::string& kind) {
  prompt.fail("expected the run of a language model, like gpt or llama; " + kind + " cannot generate text");
}

// One sample of tokens, each followed by the other, for a model that is built to fit its data.
class OneSequence final : public Dataset {
 public:
  int64_t size() const override { return 1; }
  SampleSpec spec() const override {
    return {{{"input", {2}}, {"target", {2}}}, 0, {{"input", at::kLong}, {"target", at::kLong}}};
  }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    const at::Tensor input = at::arange(2, at::kLong).repeat({std::ssize(indices), 1});
    return TensorTree::Children{{"input", input}, {"target", 1 - input}};
  }
  uint64_t digest() const override { return 0; }
};

// Models of the zoo other than these cannot generate; those of a plugin may.
void require_language_model(const Setting& prompt, const Setting& recipe) {
  const std::string& kind = recipe.at("model").at("kind").text();
  if (kind != "gpt" && kind != "llama" && kind != kPluginKind) refuse_model(prompt, kind);
}

Tokens numbers_in(const std::string& text) {
  Tokens tokens;
  std::istringstream words(text);
  for (int64_t token = 0; words >> token;) tokens.push_back(token);
  if (tokens.empty() || !words.eof())
    word(text).fail(
        "expected tokens, as in \"17 4 2\": the tokens of this model are no bytes, and its recipe names no "
        "tokenizer");
  return tokens;
}

// By the tokenizer of the training's data, or as bytes. Null: tokens are numbers.
TokenTextPtr text_of(const Setting& recipe, int64_t vocabulary) {
  const Setting& data = recipe.at("data").at("train");
  if (data.has("tokenizer")) return tokenizer_as_text(read_tokenizer(data.at("tokenizer")));
  return token_text_of(nullptr, vocabulary);
}

std::string lines_of_tokens(const Tokens& tokens, const std::vector<double>& log_probabilities,
                            const TokenTextPtr& text) {
  std::string lines;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    JsonFields fields = {{"token", tokens[i]}};
    if (text) fields.emplace_back("text", shown_tokens({tokens[i]}, text));
    if (i < log_probabilities.size()) fields.emplace_back("logprob", log_probabilities[i]);
    lines += json_line(fields) + '\n';
  }
  return lines;
}

std::string continued(LoadedModel& model, const Setting& recipe, const ContinueOptions& options) {
  const int64_t vocabulary = model.state.model->vocabulary();
  if (vocabulary == 0) refuse_model(word(options.prompt), model.state.model->kind());
  const TokenTextPtr text = text_of(recipe, vocabulary);
  Tokens tokens = text ? text->encode(options.prompt) : numbers_in(options.prompt);
  require_tokens(word(options.prompt), tokens, vocabulary);
  GenerationOptions generation{.max_new_tokens = options.length, .top_k = options.top_k};
  generation.do_sample = options.temperature > 0;
  if (generation.do_sample) generation.temperature = options.temperature;
  const Prompt prompt{tokens, RandomKey(options.seed, "text sample")};
  model.engine.run_event(Event::kPredictStart);
  std::vector<std::vector<double>> log_probabilities(1);
  if (options.logprobs) generation.log_probabilities = &log_probabilities;
  const Tokens added = model.state.generate({prompt}, generation).front();
  model.engine.run_event(Event::kPredictEnd);
  if (options.logprobs) return lines_of_tokens(added, log_probabilities.front(), text);
  tokens.insert(tokens.end(), added.begin(), added.end());
  return shown_tokens(tokens, text) + '\n';
}

}  // namespace

std::string generate_text(const ContinueOptions& options) try {
  const auto [checkpoint, recipe] = find_saved_run(options.path);
  require_language_model(word(options.prompt), recipe);
  const Job job = job_with_data(recipe, std::make_shared<OneSequence>());
  LoadedModel model(job, checkpoint.folder);
  model.load();
  return continued(model, recipe, options);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
