#include "data/tables/text_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/tables/table_rows.h"
#include "data/tables/text_rows.h"
#include "runtime/error.h"

namespace tutti {
namespace {

struct Use {
  const char* option;
  const std::string& column;
};

std::vector<Use> uses_of(const TextTable::Options& options) {
  std::vector<Use> uses = {{"text", options.text}};
  for (const Use& use :
       {Use{"text_pair", options.text_pair}, {"positive", options.positive}, {"negative", options.negative}})
    if (!use.column.empty()) uses.push_back(use);
  return uses;
}

// Each column has one use.
void require_columns(const TableFile& file, const TextTable::Options& options) {
  ColumnUses uses;
  uses.add("target", options.targets.columns);
  for (const auto& [option, column] : uses_of(options)) {
    require_column(file, column, option);
    uses.add(option, {column});
  }
}

std::vector<TextColumns> arrays_of(const TextTable::Options& options) {
  std::vector<TextColumns> arrays = {
      {.columns = {options.text}, .tokens = options.array, .mask = "attention_mask"}};
  if (!options.text_pair.empty()) arrays[0].columns.push_back(options.text_pair);
  if (!options.positive.empty())
    arrays.push_back({{options.positive}, "positive_ids", "positive_attention_mask"});
  if (!options.negative.empty())
    arrays.push_back({{options.negative}, "negative_ids", "negative_attention_mask"});
  return arrays;
}

FittedTable chosen_targets(const TableFile& file, const TextTable::Options& options) {
  ColumnUses().add("classes", options.targets.classes);
  return {.target = options.targets.columns,
          .target_is = options.targets.found_in(file),
          .classes = options.targets.classes};
}

}  // namespace

struct TextTable::Read {
  FittedTable fitted;
  std::vector<StoredArray> arrays;
  int64_t bytes = 0;
  std::string advice;

  static Read all(const TableFiles& files, const Options& options, const FittedTable& fitted, bool fits) {
    const bool with_target = fits ? !fitted.target.empty() : has_targets(files, fitted);
    TableRows rows(fitted, {.fits = fits,
                            .may_guess_classes = fits && options.targets.type == TableTarget::kAuto,
                            .with_target = with_target,
                            .ignore_index = options.targets.ignore_index,
                            .rows = options.rows});
    TextRows texts(options.tokenizer, options.sequence_length, arrays_of(options));
    for (const auto& file : files) {
      require_columns(*file, options);
      ColumnChoice choice(*file);
      for (const Use& use : uses_of(options)) choice.add(use.column, CellType::kText);
      if (with_target) choice.add_targets(fitted);
      rows.read(*file, choice.cells(),
                [&](auto, auto row_texts) { texts.add(*file, rows.row_of_file(), row_texts); });
    }
    rows.finish();
    texts.finish();
    Read read{.fitted = rows.fitted(),
              .arrays = {},
              .bytes = rows.bytes() + texts.bytes(),
              .advice = advice_lines(
                  files, {fits && with_target ? options.targets.advice(*files[0], fitted.target_is) : "",
                          rows.advice(), texts.advice()})};
    const std::string& path = files.at(0)->path();
    read.arrays = texts.take_arrays(path);
    if (auto target = rows.take_target(path)) read.arrays.push_back(*std::move(target));
    return read;
  }
};

TextTable::TextTable(const TableFiles& files, const Options& options)
    : TextTable(Read::all(files, options, chosen_targets(*files.at(0), options), /*fits=*/true), options) {}

TextTable::TextTable(const TableFiles& files, const Options& options, const FittedTable& fitted)
    : TextTable(Read::all(files, options, fitted, /*fits=*/false), options) {}

TextTable::TextTable(Read read, const Options& options)
    : ArrayDataset(std::move(read.arrays),
                   {.ignore_index = options.targets.ignore_index, .advice = std::move(read.advice)}),
      fitted_(std::move(read.fitted)),
      bytes_(read.bytes),
      tokenizer_(options.tokenizer) {}

SampleSpec TextTable::spec() const {
  SampleSpec spec = ArrayDataset::spec();
  if (spec.shapes.count("target")) return spec;
  spec.classes = fitted_.target.empty() ? tokenizer_->vocab_size() : fitted_.num_classes;
  return spec;
}

uint64_t TextTable::digest() const { return fitted_.digest(ArrayDataset::digest()); }

}  // namespace tutti
