#include "training/callbacks/samples/generate.h"

#include <utility>

#include "io/json/json_line.h"
#include "runtime/text.h"
#include "training/callbacks/options.h"
#include "training/state.h"
#include "training/token_text.h"
#include "training/work_in_parts.h"

namespace tutti {
namespace {

Tokens tokens_of(const Setting& prompt, int64_t vocabulary, const TokenTextPtr& text) {
  if (!prompt.is_text() && !prompt.is_array()) prompt.fail("expected a text, or a list of tokens");
  if (prompt.is_text() && !text)
    prompt.fail("expected a list of tokens, like [17, 4]: this model has " + std::to_string(vocabulary) +
                " tokens, which are not bytes, and its data have no tokenizer");
  const Tokens tokens = prompt.is_text() ? text->encode(prompt.text()) : prompt.integers();
  if (tokens.empty()) prompt.fail("expected at least one token");
  require_tokens(prompt, tokens, vocabulary);
  return tokens;
}

}  // namespace

void require_tokens(const Setting& prompt, const Tokens& tokens, int64_t vocabulary) {
  for (const int64_t token : tokens)
    if (token < 0 || token >= vocabulary)
      prompt.fail("the model has tokens 0 to " + std::to_string(vocabulary - 1) + ", not " +
                  std::to_string(token));
}

std::string shown_tokens(const Tokens& tokens, const TokenTextPtr& text) {
  if (text) return as_utf8(text->decode(tokens));
  std::string numbers;
  for (const int64_t token : tokens) numbers += (numbers.empty() ? "" : " ") + std::to_string(token);
  return numbers;
}

void Generate::require(const State& state) const {
  const Setting& prompts = options_.prompts;
  if (!prompts.is_array() || prompts.array().empty())
    prompts.fail("expected a list of texts, or of lists of tokens");
  const int64_t vocabulary = state.model->vocabulary();
  if (vocabulary == 0)
    prompts.fail(std::string("expected a language model, like gpt or llama; ") + state.model->kind() +
                 " cannot generate text");
  const TokenTextPtr text = token_text_of(state.dataset, vocabulary);
  for (const Setting& prompt : prompts.array()) tokens_of(prompt, vocabulary, text);
}

void Generate::fit_end(State& state, Logger& logger) {
  due_ = true;
  log_if_due(state, logger);
}

// All ranks keep the same state, though only rank 0 generates.
void Generate::log_if_due(State& state, Logger& logger) {
  if (!std::exchange(due_, false)) return;
  if (std::exchange(last_batch_, state.timestamp.batch) == state.timestamp.batch) return;
  const std::vector<Prompt> all = prompts(state);
  std::vector<Tokens> texts;
  const auto generate = [&](int64_t first, int64_t count) {
    const auto begin = all.begin() + first;
    for (Tokens& tokens : state.generate(std::vector<Prompt>(begin, begin + count), generation(state)))
      texts.push_back(std::move(tokens));
  };
  work_in_parts(state, state.topology.rank == 0,
                {.items = std::ssize(all),
                 .part = batch_size(std::ssize(all)),
                 .forwards = options_.generation.max_new_tokens,
                 .work = generate});
  if (!texts.empty()) log(state, texts, logger);
}

void Generate::log(const State& state, const std::vector<Tokens>& texts, Logger& logger) const {
  const TokenTextPtr text = token_text_of(state.dataset, state.model->vocabulary());
  LoggedTable table{"generations", {"prompt", "generation"}, {}};
  for (std::size_t p = 0; p < texts.size(); ++p) {
    const Setting& prompt = options_.prompts.array()[p];
    const std::string given = prompt.is_text() ? prompt.text() : shown_tokens(prompt.integers(), nullptr);
    table.rows.push_back({given, shown_tokens(texts[p], prompt.is_text() ? text : nullptr)});
  }
  logger.log_table(table);
}

std::vector<Prompt> Generate::prompts(const State& state) const {
  const RandomKey draws =
      RandomKey(state.seed, "generations").fold_in(static_cast<uint64_t>(state.timestamp.batch));
  const int64_t vocabulary = state.model->vocabulary();
  const TokenTextPtr text = token_text_of(state.dataset, vocabulary);
  std::vector<Prompt> all;
  for (const Setting& prompt : options_.prompts.array())
    all.push_back({tokens_of(prompt, vocabulary, text), draws.fold_in(all.size())});
  return all;
}

GenerationOptions Generate::generation(const State& state) const {
  GenerationOptions options = options_.generation;
  options.each_token = [services = state.services] { services->still_at_work(); };
  return options;
}

std::string Generate::state() const {
  return json_line({{"due", int64_t{due_}}, {"last_batch", last_batch_}});
}

void Generate::restore(const std::string& json) {
  due_ = json_number(json, "due") != 0;
  last_batch_ = static_cast<int64_t>(json_number(json, "last_batch"));
}

CallbackPtr GenerateOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<Generate>(interval,
                                    Generate::Options{.prompts = prompts,
                                                      .batch_size = batch_size,
                                                      .generation = {.max_new_tokens = max_new_tokens,
                                                                     .do_sample = do_sample,
                                                                     .temperature = temperature,
                                                                     .top_k = top_k,
                                                                     .top_p = top_p}});
}

}  // namespace tutti
