#pragma once

#include <memory>
#include <string>

#include "data/arrays/array_dataset.h"
#include "data/tables/fitted_table.h"
#include "data/tables/table_columns.h"
#include "data/tokenizers/tokenizer.h"

namespace tutti {

// Rows of tables with texts, one file behind the other:
//   `array`           int64 [sequence_length]: the tokens of `text`, or of `text` and `text_pair`
//   "attention_mask"  int64 [sequence_length]: 1; 0 where a shorter text is filled
//   "token_type_ids"  int64 [sequence_length], with `text_pair`: 0, and 1 in the second text
//   "positive_ids", "positive_attention_mask" with `positive`, and so "negative_..." with `negative`
//   "target"          by FittedTable::Target, if there are targets
// What transformers' tokenizer gives, filled at the end. If the training has no targets, the classes of the
// layout are the tokenizer's tokens. All tokens are in memory.
class TextTable final : public ArrayDataset {
 public:
  struct Options {
    std::shared_ptr<const Tokenizer> tokenizer;
    int64_t sequence_length = 128;
    std::string text = "text", text_pair = "", positive = "", negative = "";  // columns; "": none
    std::string array = "input_ids";
    TableTargets targets = {};
    const std::vector<bool>* rows = nullptr;  // true for each row to keep; null: all
  };

  // The training's table. Throws UserError with place and column, WrongKey.
  TextTable(const TableFiles& files, const Options& options);
  // A table to evaluate or to predict, where the targets may be missing.
  TextTable(const TableFiles& files, const Options& options, const FittedTable& fitted);

  SampleSpec spec() const override;
  uint64_t digest() const override;
  std::string fitted() const override { return fitted_.target.empty() ? "" : fitted_.to_json(); }
  int64_t memory_bytes() const override { return bytes_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }

 private:
  struct Read;
  TextTable(Read read, const Options& options);

  FittedTable fitted_;
  int64_t bytes_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace tutti
