#include "data/texts/choice_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "data/tokenizers/unicode/words.h"
#include "data/transforms/ignore_index.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kChoiceFacts = 6;

// Tokens of a question and of the choice behind the question.
struct EncodedChoice {
  std::vector<int64_t> whole;
  int64_t context = 0;  // tokens of `whole` that are the question's
};

// As lm-eval's TemplateLM.loglikelihood and _encode_pair: blanks at the end of a question go to the choice.
EncodedChoice encode_choice(const TaskTokens& tokens, std::string_view context, const std::string& choice) {
  const std::string continuation = " " + choice;
  if (context.empty()) {
    std::vector<int64_t> whole = tokens.encode(continuation, /*with_special=*/false);
    if (whole.empty() || whole[0] != tokens.start()) whole.insert(whole.begin(), tokens.start());
    return {std::move(whole), 1};
  }
  const std::string_view question = without_blanks_behind(context);
  return {tokens.encode(std::string(context) + continuation), std::ssize(tokens.encode(question))};
}

[[noreturn]] void refuse_answer(const std::string& answer, int64_t choices) {
  throw UserError("the answer " + shown(answer) + " names none of the " + std::to_string(choices) +
                  " choices; expected a choice's number, from 0, its letter, from A, or its text");
}

// The index of the right choice.
int64_t right_choice(const std::variant<int64_t, std::string>& answer,
                     const std::vector<std::string>& choices, AnswersBy& by) {
  const int64_t count = std::ssize(choices);
  by = AnswersBy::kNumber;
  if (const auto* number = std::get_if<int64_t>(&answer)) {
    if (*number < 0 || *number >= count) refuse_answer(std::to_string(*number), count);
    return *number;
  }
  const auto& text = std::get<std::string>(answer);
  if (const auto same = std::ranges::find(choices, text); same != choices.end()) {
    by = AnswersBy::kText;
    return same - choices.begin();
  }
  int64_t number = -1;
  if (text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z') {
    by = AnswersBy::kLetter;
    number = text[0] - 'A';
  } else if (const auto end = text.data() + text.size();
             std::from_chars(text.data(), end, number).ptr != end) {
    number = -1;
  }
  if (number < 0 || number >= count) refuse_answer(text, count);
  return number;
}

}  // namespace

struct ChoiceRows::Members {
  TaskMember context, choices, answer;
};

ChoiceRows::ChoiceRows(const std::vector<std::string>& files, const Options& options) : options_(options) {
  Members members{{options.context, {"question", "query", "ctx"}},
                  {options.choices, {"choices", "endings"}},
                  {options.answer, {"answer", "label", "gold"}}};
  for_each_task(files, "question", [&](const JsonDocument& line) { read(line, members); });
  add_line(advice_,
           guesses_text(
               {{"question", &members.context}, {"choices", &members.choices}, {"answer", &members.answer}}));
  if (answers_by_ == AnswersBy::kLetter)
    add_line(advice_, "answers are read as letters: \"A\" is the first choice");
  if (answers_by_ == AnswersBy::kNumber)
    add_line(advice_, "answers are read as numbers: 0 is the first choice");
  if (cut_ > 0)
    add_line(advice_, std::to_string(cut_) + " of " + std::to_string(size()) +
                          " choices exceed sequence_length = " + std::to_string(options_.sequence_length) +
                          " with their question, which loses its beginning");
}

void ChoiceRows::read(const JsonDocument& json, Members& members) {
  const std::string context = json.text(members.context.in(json));
  const std::vector<std::string> choices = json.list_of_texts(members.choices.in(json));
  if (choices.size() < 2) throw UserError("expected a list of two choices or more");
  AnswersBy by = AnswersBy::kText;
  const int64_t right = right_choice(json.integer_or_text(members.answer.in(json)), choices, by);
  if (by != AnswersBy::kText && answers_by_ != AnswersBy::kText && by != answers_by_)
    throw UserError(
        "the answer is a letter here and a number elsewhere, or the other way; numbers begin with 0, so that "
        "\"1\" and \"B\" are the same choice: expected only one of the two");
  if (by != AnswersBy::kText) answers_by_ = by;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    Row row = row_of(context, choices[i]);
    row.question = questions_;
    row.choice = static_cast<int64_t>(i);
    row.choices = std::ssize(choices);
    row.is_right = row.choice == right ? 1 : 0;
    length_ = std::max(length_, std::ssize(row.tokens) - 1);
    rows_.push_back(std::move(row));
  }
  ++questions_;
}

ChoiceRows::Row ChoiceRows::row_of(const std::string& context, const std::string& choice) {
  if (choice.empty()) throw UserError("a choice is empty");
  const EncodedChoice encoded = encode_choice(options_.tokens, context, choice);
  const int64_t all = std::ssize(encoded.whole), scored = all - encoded.context;
  if (encoded.context == 0) throw UserError("the question has no token");
  if (scored <= 0) throw UserError("the choice " + shown(choice) + " has no token of its own");
  if (scored > options_.sequence_length)
    throw UserError("the choice " + shown(choice) + " has " + std::to_string(scored) +
                    " tokens, more than sequence_length = " + std::to_string(options_.sequence_length));
  const int64_t kept = std::min(all, options_.sequence_length + 1);
  cut_ += kept < all ? 1 : 0;
  return {.tokens = {encoded.whole.end() - kept, encoded.whole.end()},
          .scored = scored,
          .characters = static_cast<int64_t>(characters_in(choice)),
          .bytes = std::ssize(choice)};
}

SampleSpec ChoiceRows::spec() const {
  SampleSpec spec{.classes = options_.tokens.vocab_size()};
  for (const char* name : {"input", "target", kChoiceTargets}) spec.shapes[name] = {length_};
  spec.shapes["choice"] = {kChoiceFacts};
  for (const auto& [name, shape] : spec.shapes) spec.dtypes[name] = at::kLong;
  return spec;
}

Batch ChoiceRows::get(std::span<const int64_t> indices, const Epoch&) const {
  const Shape shape = {std::ssize(indices), length_};
  const at::Tensor input = at::full(shape, 0, at::kLong), target = at::full(shape, kIgnoredTarget, at::kLong),
                   scored = at::full(shape, kIgnoredTarget, at::kLong),
                   choice = at::empty({std::ssize(indices), kChoiceFacts}, at::kLong);
  auto* to = choice.mutable_data_ptr<int64_t>();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    TUTTI_ASSERT(indices[i] >= 0 && indices[i] < size(), "sample " + std::to_string(indices[i]));
    const Row& row = rows_[static_cast<std::size_t>(indices[i])];
    const int64_t begin = static_cast<int64_t>(i) * length_, inputs = std::ssize(row.tokens) - 1;
    std::copy(row.tokens.begin(), row.tokens.end() - 1, input.mutable_data_ptr<int64_t>() + begin);
    for (const at::Tensor& targets : {scored, target})
      if (targets.is_same(scored) || row.is_right)
        std::copy(row.tokens.end() - row.scored, row.tokens.end(),
                  targets.mutable_data_ptr<int64_t>() + begin + inputs - row.scored);
    to = std::ranges::copy(std::initializer_list<int64_t>{row.question, row.choice, row.choices, row.is_right,
                                                          row.characters, row.bytes},
                           to)
             .out;
  }
  return TensorTree::Children{
      {"input", input}, {"target", target}, {kChoiceTargets, scored}, {"choice", choice}};
}

uint64_t ChoiceRows::digest() const { return digest_of_samples(*this); }

int64_t ChoiceRows::memory_bytes() const {
  int64_t bytes = 0;
  for (const Row& row : rows_)
    bytes += std::ssize(row.tokens) * int64_t{sizeof(int32_t)} + int64_t{sizeof(Row)};
  return bytes;
}

}  // namespace tutti
