#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "io/tables/table_file.h"
#include "runtime/workers.h"

namespace tutti {

// The tokens of a column of texts, or of two columns, a row a sample, as by transformers' tokenizer(text,
// text_pair, truncation=True, max_length=..., padding="max_length").
struct TextColumns {
  std::vector<std::string> columns;  // one or two
  std::string tokens, mask;          // names of arrays; of pairs there is "token_type_ids"
};

// Rows of tables as arrays of tokens, in memory.
class TextRows {
 public:
  // Throws WrongKey if special tokens leave no room in `sequence_length`.
  TextRows(std::shared_ptr<const Tokenizer> tokenizer, int64_t sequence_length,
           std::vector<TextColumns> arrays);

  // The texts of a row, of all columns in order, which are copied. `row`: in the file, from 1. Throws
  // UserError with the file's place.
  void add(const TableFile& file, int64_t row, std::span<const std::string_view> texts);
  // Encodes what was added. Throws UserError with a row that cannot be encoded.
  void finish();

  int64_t bytes() const;
  // Each int64 [rows, sequence_length] in batches. `file`: for errors.
  std::vector<StoredArray> take_arrays(const std::string& file);
  // If texts are cut, or filled for the most part: a line. "" = none.
  std::string advice() const;

 private:
  struct Sequences {
    TextColumns of;
    int64_t special = 0;  // tokens around a text or pair
    std::vector<int32_t> tokens;
    std::vector<int8_t> mask, types;
  };
  void encode_waiting();
  // Returns the length before it was cut.
  int64_t encode(std::span<const std::string> texts, int64_t row, Sequences& to) const;
  // `room`: of texts without special tokens; adds their length before the cut.
  EncodedPair encode(std::span<const std::string> texts, std::size_t room, int64_t& length) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t sequence_length_;
  int32_t filling_;
  std::vector<Sequences> arrays_;
  std::vector<std::vector<std::string>> waiting_;  // texts of rows of one file
  std::vector<int64_t> waiting_rows_;              // their numbers in the file
  std::size_t waiting_bytes_ = 0;
  const TableFile* file_ = nullptr;
  int64_t rows_ = 0;               // encoded
  int64_t longest_ = 0, cut_ = 0;  // tokens; texts
  std::unique_ptr<Workers> workers_;
};

}  // namespace tutti
