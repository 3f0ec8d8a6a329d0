#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "io/json/json_document.h"
#include "tensors/tree.h"

namespace tutti {

// Batches' names for arrays of ChoiceRows and PromptRows.
inline constexpr const char* kChoiceTargets = "choice_target";
inline constexpr const char* kReferences = "references";

// True for the samples of ChoiceRows and PromptRows, which evaluate a language model whatever its training's
// samples are.
bool is_language_task(const SampleSpec& samples);

// How the texts of a task are tokens.
struct TaskTokens {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: each byte is a token
  bool special = true;                         // with the tokenizer's own special tokens

  std::vector<int64_t> encode(std::string_view text) const { return encode(text, special); }
  std::vector<int64_t> encode(std::string_view text, bool with_special) const;
  // The token that texts begin with, else the token that ends texts. Throws UserError if there is neither.
  int64_t start() const;
  int64_t end() const;  // the token that ends texts; -1: none
  int64_t vocab_size() const;
};

// A member of each line of JSON: `name`, or else the first of `usual` that the first line has.
class TaskMember {
 public:
  TaskMember(std::string name, std::vector<std::string> usual)
      : name_(std::move(name)), usual_(std::move(usual)) {}

  // Throws UserError if the line has none of the usual members.
  const std::string& in(const JsonDocument& line);
  const std::string& name() const { return name_; }
  bool is_guess() const { return is_guess_; }

 private:
  std::string name_;
  std::vector<std::string> usual_;
  bool is_guess_ = false;
};

// The members that were guessed, for the user; "" = none.
std::string guesses_text(const std::vector<std::pair<const char*, const TaskMember*>>& members);

// Calls with each line of the files, of JSON. Throws UserError with the line, also for those that are thrown
// there; or if there is no `what` ("question") in the files.
void for_each_task(const std::vector<std::string>& files, const char* what,
                   const std::function<void(const JsonDocument& line)>& read);

void add_line(std::string& lines, const std::string& line);  // "" is no line

}  // namespace tutti
