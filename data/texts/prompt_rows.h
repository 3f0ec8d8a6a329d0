#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/texts/task_tokens.h"

namespace tutti {

// The texts in a row of bytes (list_bytes), and the row.
std::string list_bytes(const std::vector<std::string>& texts);
std::vector<std::string> texts_in_bytes(std::string_view bytes);

// Prompts that a language model answers, with the answers that are right, from lines of JSON. Of so many
// tokens P as the longest prompt has:
//   "input"       int64 [P]: the prompt, and filling
//   "target"      int64 [P]: -100
//   "generation"  int64 [3]: the prompt's tokens; tokens to generate; the token that ends an answer, or -1
//   "references"  uint8 [bytes]: the right answers (texts_in_bytes)
//   "stop"        uint8 [bytes]: texts that end an answer; only if there are any
class PromptRows final : public Dataset {
 public:
  // Members of the lines, by dots of objects in them; "": the usual names.
  struct Options {
    TaskTokens tokens;
    std::string prompt, reference;
    int64_t max_new_tokens = 64;
    std::vector<std::string> stop = {};
    int64_t sequence_length = 1024;  // P, at most: longer prompts lose their beginning
  };

  // Throws UserError with the line of the error.
  PromptRows(const std::vector<std::string>& files, const Options& options);

  int64_t size() const override { return std::ssize(rows_); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;
  std::string advice() const override { return advice_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.tokens.tokenizer; }
  int64_t memory_bytes() const override;

 private:
  struct Row {
    std::vector<int32_t> prompt;
    std::string references;
  };

  Row read(const JsonDocument& json, TaskMember& prompt, TaskMember& reference);

  Options options_;
  std::vector<Row> rows_;
  int64_t length_ = 1, bytes_ = 1, cut_ = 0;
  std::string advice_;
};

}  // namespace tutti
