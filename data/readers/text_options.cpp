#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "data/readers/make_dataset.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/readers/task_options.h"
#include "data/readers/token_dataset.h"
#include "data/streams/text_stream.h"
#include "data/texts/choice_rows.h"
#include "data/texts/packed_texts.h"
#include "data/texts/preference_pairs.h"
#include "data/texts/prompt_rows.h"
#include "data/texts/tokenized_texts.h"
#include "data/tokenizers/tokenizer_files.h"
#include "runtime/error.h"
#include "runtime/workers.h"

namespace tutti {
namespace {

// The token before or behind documents.
std::optional<uint32_t> token_of(const Setting& section, const char* key, bool is_added,
                                 const Tokenizer& tokenizer, std::optional<uint32_t> usual) {
  if (!is_added) return std::nullopt;
  if (section.has(key)) {
    if (const auto id = tokenizer.id_of(section.at(key).text())) return id;
    section.at(key).fail("the tokenizer has no such token");
  }
  if (usual) return usual;
  const Setting* asked = section.find(std::string("add_") + key);
  (asked ? *asked : section.at("tokenizer"))
      .fail("no tokenizer_config.json beside the tokenizer says which token that is; give " +
            std::string(key) + ", or false here");
}

// Documents before the part of the split, and in it.
std::pair<int64_t, int64_t> documents_of(const TextOptions& options, int64_t all) {
  const auto training = static_cast<int64_t>(static_cast<double>(all) * (1 - options.eval_fraction));
  if (options.split == TokenSplit::kEval) return {training, all - training};
  return {0, options.split == TokenSplit::kTrain ? training : all};
}

void require_pairs(const Setting& section, const TextOptions& options) {
  if (options.chosen_field.empty() != options.rejected_field.empty())
    section.at(options.chosen_field.empty() ? "rejected_field" : "chosen_field")
        .fail("chosen_field and rejected_field are given together");
  for (const char* key : {"response_field", "messages_field", "command"})
    if (!options.chosen_field.empty() && section.has(key))
      section.at(key).fail("chosen_field and rejected_field are in its place");
}

void require_fields(const Setting& section, const TextOptions& options) {
  require_pairs(section, options);
  if (options.chosen_field.empty() && options.prompt_field.has_value() == options.response_field.empty())
    section.at(options.prompt_field ? "prompt_field" : "response_field")
        .fail("prompt_field and response_field are given together");
  if (!options.command.empty())
    for (const char* key : {"cache", "split"})
      if (section.has(key) && section.at(key).text() != "all")
        section.at(key).fail(
            "what a command writes has no parts, and its tokens are not kept; expected path, or another "
            "command");
  if (section.has("turn") && options.turn.find("{content}") == std::string::npos)
    section.at("turn").fail("expected {content} in it");
}

// How documents stand in lines of JSON. A chat is written as the recipe says, else as the tokenizer does.
DocumentFormat document_format(const Setting& section, const TextOptions& options,
                               const Tokenizer& tokenizer) {
  DocumentFormat format{
      .text = options.text_field, .response = options.response_field, .messages = options.messages_field};
  if (const auto& prompt = options.prompt_field)
    format.prompt = prompt->is_array() ? prompt->texts() : std::vector<std::string>{prompt->text()};
  if (!options.turn.empty()) {
    format.turn = options.turn;
  } else if (!format.messages.empty()) {
    try {
      format.chat_template = ChatTemplate::beside(tokenizer);
    } catch (const UserError& error) {
      section.at("tokenizer").fail(error);
    }
  }
  return format;
}

}  // namespace

std::shared_ptr<const Tokenizer> read_tokenizer(const Setting& key) try {
  return Tokenizer::read(tokenizer_file(key.text()));
} catch (const UserError& error) {
  key.fail(error);
}

Tokenization tokenization_of(const Setting& section, const std::string& answers) {
  TextOptions options = TextOptions::kind().read(section);
  require_fields(section, options);
  if (!answers.empty()) (options.prompt_field ? options.response_field : options.messages_field) = answers;
  const auto reader = read_tokenizer(section.at("tokenizer"));
  const SpecialIds& special = reader->special_ids();
  const DocumentFormat format = document_format(section, options, *reader);
  const bool adds_end = options.add_eos_token && (section.has("add_eos_token") || !format.chat_template);
  return {.files = options.command.empty() ? files_of(section.at("path")) : std::vector<std::string>(),
          .format = format,
          .tokenizer = reader,
          .begin = token_of(section, "bos_token", options.add_bos_token, *reader, special.begin),
          .end = token_of(section, "eos_token", adds_end, *reader, special.end),
          .skip_bad = options.skip_bad,
          .threads = usable_cores()};
}

namespace {

// The token where a packed sample has none.
uint32_t filling_of(const Tokenizer& tokenizer) {
  const SpecialIds& special = tokenizer.special_ids();
  return special.pad.value_or(special.end.value_or(0));
}

DatasetPtr open_text_stream(const Setting& section, const TextOptions& options, Tokenization how) {
  how.threads = std::max(1, DataSettings::read(section).num_workers);
  return opened(section, [&] {
    return std::make_shared<const TextStream>(
        TextStream::Options{.how = how,
                            .json_lines = options.json_lines,
                            .sequence_length = options.sequence_length,
                            .first_fit = options.packing == TextPackingKind::kFirstFit,
                            .filling = static_cast<int32_t>(filling_of(*how.tokenizer))},
        stream_of(section, options));
  });
}

// For the documents of the part of the split, of so many.
PackedTexts::Options packed_options(const TextOptions& options, const Tokenization& how, int64_t all) {
  const auto [first, documents] = documents_of(options, all);
  return {.sequence_length = options.sequence_length,
          .first_document = first,
          .documents = documents,
          .filling = filling_of(*how.tokenizer),
          .tokenizer = how.tokenizer,
          .advice = how.advice()};
}

DatasetPtr open_pairs(const Setting& section, const TextOptions& options) {
  const Tokenization chosen = tokenization_of(section, options.chosen_field),
                     rejected = tokenization_of(section, options.rejected_field);
  const std::string folder = options.cache.empty() ? default_token_folder() : options.cache;
  return opened(section, [&] {
    const TokenizedTexts texts = TokenizedTexts::open(chosen, folder);
    return std::make_shared<const PreferencePairs>(texts, TokenizedTexts::open(rejected, folder),
                                                   packed_options(options, chosen, texts.documents().size()));
  });
}

TaskTokens task_tokens(const Setting& section, const TaskOptions& options) {
  const bool are_bytes = options.tokenizer.empty();
  return {.tokenizer = are_bytes ? nullptr : read_tokenizer(section.at("tokenizer")),
          .special = options.add_special_tokens};
}

}  // namespace

DatasetPtr TextOptions::make(const Setting& section, const DataEnvironment&) const {
  require_one_source(section);
  if (!chosen_field.empty()) return open_pairs(section, *this);
  const Tokenization how = tokenization_of(section);
  if (!command.empty()) return open_text_stream(section, *this, how);
  const auto& reader = how.tokenizer;
  return opened(section, [&]() -> DatasetPtr {
    const TokenizedTexts texts = TokenizedTexts::open(how, cache.empty() ? default_token_folder() : cache);
    if (packing == TextPackingKind::kCut)
      return std::make_shared<const TokenDataset>(TokenDataset::Options{.path = texts.tokens().path(),
                                                                        .format = std::nullopt,
                                                                        .sequence_length = sequence_length,
                                                                        .split = split,
                                                                        .eval_fraction = eval_fraction,
                                                                        .vocab_size = reader->vocab_size(),
                                                                        .texts = texts,
                                                                        .tokenizer = reader,
                                                                        .advice = how.advice()});
    return std::make_shared<const PackedTexts>(texts, packed_options(*this, how, texts.documents().size()));
  });
}

DatasetPtr ChoicesOptions::make(const Setting& section) const {
  if (has_per_rank_data(section))
    DataSettings::read(section).sampling.key.fail("ranks share the questions of kind = \"choices\"");
  const ChoiceRows::Options options{.tokens = task_tokens(section, *this),
                                    .context = context_field,
                                    .choices = choices_field,
                                    .answer = answer_field,
                                    .sequence_length = sequence_length};
  return opened(section,
                [&] { return std::make_shared<const ChoiceRows>(files_of(section.at("path")), options); });
}

DatasetPtr PromptsOptions::make(const Setting& section) const {
  for (const std::string& text : stop)
    if (text.empty()) section.at("stop").fail("a text that ends an answer is not empty");
  const PromptRows::Options options{.tokens = task_tokens(section, *this),
                                    .prompt = prompt_field,
                                    .reference = reference_field,
                                    .max_new_tokens = max_new_tokens,
                                    .stop = stop,
                                    .sequence_length = sequence_length};
  return opened(section,
                [&] { return std::make_shared<const PromptRows>(files_of(section.at("path")), options); });
}

}  // namespace tutti
