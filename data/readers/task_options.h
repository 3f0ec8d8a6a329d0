#pragma once

#include <memory>
#include <string>
#include <vector>

#include "recipe/options.h"

// Kinds of [data.eval] and [[evaluators]] that evaluate a language model by texts. Free of libtorch.
namespace tutti {

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;

struct TaskOptions {
  std::string path = "";
  std::string tokenizer = "";      // "": bytes
  bool add_special_tokens = true;  // as the tokenizer's file says
  int64_t sequence_length = 1024;
};

// Questions with choices (data/texts/choice_rows.h).
struct ChoicesOptions : TaskOptions {
  std::string context_field = "", choices_field = "", answer_field = "";  // "": the usual names

  static Kind<ChoicesOptions> kind();
  DatasetPtr make(const Setting& section) const;
};

// Prompts with right answers (data/texts/prompt_rows.h).
struct PromptsOptions : TaskOptions {
  std::string prompt_field = "", reference_field = "";  // "": the usual names
  int64_t max_new_tokens = 64;
  std::vector<std::string> stop = {};

  static Kind<PromptsOptions> kind();
  DatasetPtr make(const Setting& section) const;
};

using TaskKinds = Kinds<ChoicesOptions, PromptsOptions>;

}  // namespace tutti
