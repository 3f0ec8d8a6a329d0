#include "data/tables/text_rows.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "data/tables/table_columns.h"
#include "data/tables/table_rows.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20;  // of texts that threads share

int64_t special_tokens(const Tokenizer& tokenizer, bool is_pair) {
  const auto& around = tokenizer.around().around();
  return is_pair ? std::ssize(tokenizer.around().pair({}, {}, true).ids)
                 : std::ssize(around.before) + std::ssize(around.behind);
}

// transformers' truncation "longest_first".
void cut_pair(std::vector<uint32_t>& first, std::vector<uint32_t>& second, std::size_t room) {
  const bool is_first_shorter = first.size() <= second.size();
  auto& shorter = is_first_shorter ? first : second;
  auto& longer = is_first_shorter ? second : first;
  shorter.resize(std::min(shorter.size(), room / 2));
  longer.resize(std::min(longer.size(), room - shorter.size()));
}

}  // namespace

TextRows::TextRows(std::shared_ptr<const Tokenizer> tokenizer, int64_t sequence_length,
                   std::vector<TextColumns> arrays)
    : tokenizer_(std::move(tokenizer)),
      sequence_length_(sequence_length),
      filling_(static_cast<int32_t>(tokenizer_->special_ids().pad.value_or(0))),
      workers_(start_workers(usable_cores())) {
  for (TextColumns& columns : arrays) {
    const int64_t special = special_tokens(*tokenizer_, columns.columns.size() > 1);
    if (special >= sequence_length)
      throw WrongKey("sequence_length", {},
                     "expected more than the " + std::to_string(special) + " special tokens around a text");
    arrays_.push_back({.of = std::move(columns), .special = special, .tokens = {}, .mask = {}, .types = {}});
  }
}

void TextRows::add(const TableFile& file, int64_t number, std::span<const std::string_view> texts) {
  if (file_ != &file) {
    encode_waiting();
    file_ = &file;
  }
  std::vector<std::string> row;
  for (const auto& array : arrays_)
    for (const std::string& column : array.of.columns) {
      const std::string_view text = texts[row.size()];
      const auto fail = [&](const std::string& message) {
        throw UserError({file.path()}, file.place() + ", column '" + shown(column) + "': " + message);
      };
      if (!text.data())
        fail("a missing text; in CSV one that is empty, NA, None, nan or null stands in quotes");
      if (!is_utf8(text)) fail("not UTF-8");
      row.emplace_back(text);
      waiting_bytes_ += text.size();
    }
  waiting_.push_back(std::move(row));
  waiting_rows_.push_back(number);
  if (waiting_bytes_ >= kBytesAtOnce) encode_waiting();
}

void TextRows::finish() { encode_waiting(); }

void TextRows::encode_waiting() {
  const int64_t first = rows_;
  if (waiting_.empty()) return;
  rows_ += std::ssize(waiting_);
  require_memory(*file_, rows_, sequence_length_ * std::ssize(arrays_));
  const auto numbers = static_cast<std::size_t>(rows_ * sequence_length_);
  for (Sequences& sequences : arrays_) {
    sequences.tokens.resize(numbers, filling_);
    sequences.mask.resize(numbers);
    if (sequences.of.columns.size() > 1) sequences.types.resize(numbers);
  }
  std::vector<std::exception_ptr> errors(waiting_.size());
  std::vector<int64_t> lengths(waiting_.size() * arrays_.size());
  workers_->for_each(waiting_.size(), [&](std::size_t i) {
    try {
      std::span<const std::string> texts = waiting_[i];
      for (std::size_t a = 0; a < arrays_.size(); ++a) {
        const std::size_t count = arrays_[a].of.columns.size();
        lengths[i * arrays_.size() + a] =
            encode(texts.first(count), first + static_cast<int64_t>(i), arrays_[a]);
        texts = texts.subspan(count);
      }
    } catch (...) {
      errors[i] = std::current_exception();
    }
    return !errors[i];
  });
  for (std::size_t i = 0; i < waiting_.size(); ++i) try {
      if (errors[i]) std::rethrow_exception(errors[i]);
    } catch (const UserError& error) {
      throw UserError({file_->path()}, "row " + std::to_string(waiting_rows_[i]) + ": " + error.message());
    }
  for (const int64_t length : lengths) {
    longest_ = std::max(longest_, length);
    cut_ += length > sequence_length_;
  }
  waiting_.clear();
  waiting_rows_.clear();
  waiting_bytes_ = 0;
}

int64_t TextRows::encode(std::span<const std::string> texts, int64_t row, Sequences& to) const {
  int64_t length = to.special;
  const EncodedPair encoded = encode(texts, static_cast<std::size_t>(sequence_length_ - to.special), length);
  const auto at = row * sequence_length_;
  std::ranges::copy(encoded.ids, to.tokens.begin() + at);
  std::fill_n(to.mask.begin() + at, encoded.ids.size(), int8_t{1});
  if (texts.size() > 1) std::ranges::copy(encoded.types, to.types.begin() + at);
  return length;
}

EncodedPair TextRows::encode(std::span<const std::string> texts, std::size_t room, int64_t& length) const {
  std::vector<uint32_t> first = tokenizer_->encode(texts[0], /*special=*/false);
  if (texts.size() > 1) {
    std::vector<uint32_t> second = tokenizer_->encode(texts[1], /*special=*/false);
    length += std::ssize(first) + std::ssize(second);
    cut_pair(first, second, room);
    return tokenizer_->around().pair(first, second, /*special=*/true);
  }
  length += std::ssize(first);
  first.resize(std::min(first.size(), room));
  const auto& around = tokenizer_->around().around();
  first.insert(first.begin(), around.before.begin(), around.before.end());
  first.insert(first.end(), around.behind.begin(), around.behind.end());
  return {.ids = std::move(first), .types = {}};
}

int64_t TextRows::bytes() const {
  int64_t bytes = 0;
  for (const Sequences& sequences : arrays_)
    bytes += static_cast<int64_t>(sequences.tokens.size() * sizeof(int32_t) + sequences.mask.size() +
                                  sequences.types.size());
  return bytes;
}

std::vector<StoredArray> TextRows::take_arrays(const std::string& file) {
  std::vector<StoredArray> arrays;
  const Shape shape = {rows_, sequence_length_};
  for (Sequences& sequences : arrays_) {
    arrays.push_back(array_in_memory(sequences.of.tokens, file, std::move(sequences.tokens), shape));
    arrays.push_back(array_in_memory(sequences.of.mask, file, std::move(sequences.mask), shape));
    if (!sequences.types.empty())
      arrays.push_back(array_in_memory("token_type_ids", file, std::move(sequences.types), shape));
  }
  return arrays;
}

std::string TextRows::advice() const {
  const std::string length = "sequence_length = " + std::to_string(sequence_length_);
  if (cut_ > 0)
    return std::to_string(cut_) + " of " + std::to_string(rows_ * std::ssize(arrays_)) +
           " texts are cut at " + length + "; the longest has " + std::to_string(longest_) + " tokens";
  if (longest_ * 4 > sequence_length_ * 3) return "";
  return "the longest text has " + std::to_string(longest_) + " of " + length +
         " tokens; the rest is filled, and computed";
}

}  // namespace tutti
