#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/texts/task_tokens.h"

namespace tutti {

// How the lines of a file name the right choice.
enum class AnswersBy { kText, kLetter, kNumber };

// Questions with choices, one of them right, from lines of JSON. A sample is a choice behind its question, as
// lm-eval's tasks of multiple_choice write them: "QUESTION CHOICE". Of so many tokens L as the longest has:
//   "input"          int64 [L]: question and choice without the last token, and filling
//   "target"         int64 [L]: the next token of the right choice; -100 elsewhere, and for wrong choices
//   "choice_target"  int64 [L]: the next token of the choice, right or wrong; -100 elsewhere
//   "choice"         int64 [6]: number of the question; number of the choice, of how many; 1 if the choice is
//                    right; the choice's characters and bytes
class ChoiceRows final : public Dataset {
 public:
  // Members of the lines, by dots of objects in them; "": the usual names.
  struct Options {
    TaskTokens tokens;
    std::string context, choices, answer;
    int64_t sequence_length = 1024;  // L, at most: longer questions lose their beginning
  };

  // Throws UserError with the line of the error.
  ChoiceRows(const std::vector<std::string>& files, const Options& options);

  int64_t size() const override { return std::ssize(rows_); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;
  std::string advice() const override { return advice_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.tokens.tokenizer; }
  int64_t memory_bytes() const override;

 private:
  struct Row {
    std::vector<int32_t> tokens;
    int64_t scored = 0;  // tokens at the end that are the choice's
    int64_t question = 0, choice = 0, choices = 0, is_right = 0, characters = 0, bytes = 0;
  };
  struct Members;

  void read(const JsonDocument& json, Members& members);
  Row row_of(const std::string& context, const std::string& choice);

  Options options_;
  std::vector<Row> rows_;
  int64_t questions_ = 0, length_ = 0, cut_ = 0;
  AnswersBy answers_by_ = AnswersBy::kText;
  std::string advice_;
};

}  // namespace tutti
