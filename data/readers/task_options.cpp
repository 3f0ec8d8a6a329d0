#include "data/readers/task_options.h"

namespace tutti {
namespace {

constexpr double kMostTokensOfText = 1e6;

template <class Options>
std::vector<Bound<Options>> task_keys() {
  return {
      option<Options>("tokenizer", &Options::tokenizer,
                      "Hugging Face's tokenizer.json, the folder that has it, or its name in the cache on "
                      "this machine; default: each byte is a token")
          .as(KeyType::kPath)
          .may_be_absent(),
      option<Options>("add_special_tokens", &Options::add_special_tokens,
                      "with the special tokens that the tokenizer's file puts around a text"),
      option<Options>("sequence_length", &Options::sequence_length,
                      "the most tokens of a text; a longer text loses its beginning, and a line says so")
          .also_named({"max_length", "max_sequence_length", "max_seq_len"})
          .at_least(1)
          .at_most(kMostTokensOfText)};
}

template <class Options>
Bound<Options> lines_option() {
  return option<Options>("path", &Options::path, "JSON lines (.jsonl), or several files: \"tasks/*.jsonl\"")
      .as(KeyType::kPath)
      .required();
}

}  // namespace

Kind<ChoicesOptions> ChoicesOptions::kind() {
  using Options = ChoicesOptions;
  return {
      "choices",
      "Questions with several choices, a line each, for a language model: the likeliest choice counts as its "
      "answer, as in lm-eval's tasks of multiple_choice. Measured by ChoiceAccuracy and ChoiceAccuracyNorm.",
      with_keys<Options>(
          {lines_option<Options>(),
           option("context_field", &Options::context_field,
                  "the member of a line that is the question; a.b is b in a. Default: question, query or ctx")
               .may_be_absent(),
           option("choices_field", &Options::choices_field,
                  "the member that is the list of choices; a blank is put before each. Default: choices or "
                  "endings")
               .may_be_absent(),
           option("answer_field", &Options::answer_field,
                  "the member that is the right choice: its text, its letter (\"A\" is the first), or its "
                  "number from 0. Default: answer, label or gold")
               .may_be_absent()},
          task_keys<Options>())};
}

Kind<PromptsOptions> PromptsOptions::kind() {
  using Options = PromptsOptions;
  return {
      "prompts",
      "Prompts with the right answers, a line each, for a language model: its likeliest next tokens are its "
      "answer. Measured by ExactMatch, BLEU and CHRF.",
      with_keys<Options>(
          {lines_option<Options>(),
           option(
               "prompt_field", &Options::prompt_field,
               "the member of a line that is the prompt; a.b is b in a. Default: prompt, question or input")
               .may_be_absent(),
           option("reference_field", &Options::reference_field,
                  "the member that is the right answer, or a list of right answers. Default: reference, "
                  "references, answer or target")
               .may_be_absent(),
           option("max_new_tokens", &Options::max_new_tokens,
                  "the most tokens of an answer; the tokenizer's end of text ends an answer earlier")
               .at_least(1)
               .at_most(kMostTokensOfText),
           option("stop", &Options::stop, "texts that end an answer too, which are cut off: [\"\\n\"]")
               .may_be_absent()},
          task_keys<Options>())};
}

}  // namespace tutti
