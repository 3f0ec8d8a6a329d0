#include "data/readers/options.h"
#include "data/readers/shared_keys.h"

namespace tutti {
namespace {

template <class Options>
std::vector<Bound<Options>> target_keys() {
  return {
      option<Options>("target", &Options::target,
                      "the column to predict; or a list of columns of numbers: several values, or labels of "
                      "0 and 1")
          .as(KeyType::kTextOrTexts),
      option<Options>(
          "target_type", &Options::target_type,
          "class: each value of target is a class, sorted; auto: so are texts, and whole numbers "
          "from 0 without a gap, if they are below 1000",
          {{"auto", TableTarget::kAuto}, {"class", TableTarget::kClass}, {"number", TableTarget::kNumber}}),
      option<Options>("classes", &Options::classes,
                      "the classes' names, in the order of their numbers; default: those of target, sorted")
          .may_be_absent()};
}

template <class Options>
std::vector<Bound<Options>> text_file_keys() {
  return {option<Options>("delimiter", &Options::delimiter,
                          "the character between cells; default: a tab if the name ends in .tsv or .tab, "
                          "else a comma")
              .may_be_absent(),
          option<Options>("header", &Options::header,
                          "the first row has the columns' names; without, they are \"0\", \"1\", ...; "
                          "default: it has, unless it is of numbers alone")
              .may_be_absent()};
}

template <class Options>
Bound<Options> normalize_target_option() {
  return option<Options>(
      "normalize_target", &Options::normalize_target,
      "targets that are numbers become (y - mean) / std of their column in [data.train]; "
      "losses and metrics are those of such targets, `tutti predict` writes the column's units");
}

template <class Options>
std::vector<Bound<Options>> table_keys() {
  return {option<Options>("inputs", &Options::inputs,
                          "the columns of numbers to train on, by name; default: all but target and one_hot")
              .may_be_absent(),
          option<Options>("one_hot", &Options::one_hot,
                          "columns of texts to train on: an input of 0 or 1 for each of the texts, sorted")
              .may_be_absent(),
          option<Options>("normalize", &Options::normalize,
                          "inputs that are numbers become (x - mean) / std of their column in [data.train]; "
                          "checkpoints keep both, for evaluations and predictions"),
          normalize_target_option<Options>(),
          option<Options>("missing", &Options::fills_missing,
                          "of an input without a number; mean: its column's in [data.train]",
                          {{"error", false}, {"mean", true}}),
          option<Options>("window", &Options::window,
                          "rows of a sample, which follow each other in a series; when absent, each row is a "
                          "sample")
              .may_be_absent()
              .at_least(1)
              .at_most(kMaxSampleSize),
          option<Options>("horizon", &Options::horizon,
                          "with window: the target is in this row behind the window; 0: in its last row")
              .at_least(0)
              .at_most(kMaxSampleSize),
          option<Options>("stride", &Options::stride, "with window: rows from a window to the next")
              .at_least(1)
              .at_most(kMaxSampleSize),
          option<Options>("series", &Options::series,
                          "with window: the column that says which series a row is of, and which no window "
                          "leaves; default: each file is a series")
              .may_be_absent(),
          option<Options>("order", &Options::order,
                          "with window: the column that orders the rows of a series, of numbers, or of texts "
                          "such as 2024-05-31; default: as they are in the file")
              .may_be_absent()};
}

}  // namespace

Kind<CsvOptions> CsvOptions::kind() {
  using Options = CsvOptions;
  return {
      "csv",
      "A table in text (CSV, TSV), a sample a row; its numbers are float32 in the memory of each process. "
      "Evaluations have the columns, numbers and classes of [data.train].",
      with_keys<Options>(
          {path_option<Options>("a file, or several, one behind the other: \"table-*.csv\"")},
          with_keys<Options>(text_file_keys<Options>(),
                             with_keys<Options>(target_keys<Options>(), table_keys<Options>())))};
}

Kind<ParquetOptions> ParquetOptions::kind() {
  using Options = ParquetOptions;
  return {"parquet", "A table in Parquet, a sample a row; as csv.",
          with_keys<Options>(
              {path_option<Options>("a file, or several, one behind the other: \"table-*.parquet\"")},
              with_keys<Options>(target_keys<Options>(), table_keys<Options>()))};
}

Kind<TextTableOptions> TextTableOptions::kind() {
  using Options = TextTableOptions;
  const auto column = [](const char* key, std::string Options::*member, const char* doc) {
    return option(key, member, doc).may_be_absent();
  };
  return {
      "text_table",
      "A table of texts, a sample a row, for models of whole texts such as BERT: columns of texts become "
      "tokens, in the memory of each process. Evaluations have the target and the classes of [data.train].",
      with_keys<Options>(
          {path_option<Options>("CSV or TSV, .parquet, or JSON lines (.jsonl); or several, one behind the "
                                "other: \"texts-*.csv\""),
           option("tokenizer", &Options::tokenizer,
                  "Hugging Face's tokenizer.json, the folder that has it, or its name in the cache on this "
                  "machine")
               .as(KeyType::kPath)
               .required(),
           option("sequence_length", &Options::sequence_length,
                  "tokens of a sample, special ones included; longer texts are cut, shorter ones filled")
               .also_named({"max_length", "max_sequence_length", "max_seq_len", "max_seq_length"})
               .at_least(1)
               .at_most(kMaxSampleSize),
           option("text", &Options::text, "the column of texts"),
           column("text_pair", &Options::text_pair,
                  "a second text behind it, with token_type_ids; of both the longer one is cut first"),
           column("positive", &Options::positive, "for bert_contrastive: texts that belong to them"),
           column("negative", &Options::negative, "for bert_contrastive: texts that do not"),
           option("array", &Options::array, "the batch's name for the tokens of text",
                  {{"input_ids", "input_ids"}, {"input", "input"}})},
          with_keys<Options>(text_file_keys<Options>(), target_keys<Options>()))};
}

Kind<ImageTableOptions> ImageTableOptions::kind() {
  using Options = ImageTableOptions;
  return {
      "image_table",
      "A table with a column of pictures' paths, a sample a row: images as image_folder's, and columns of "
      "targets: classes or numbers. Evaluations have the target and the classes of [data.train].",
      with_keys<Options>(
          {path_option<Options>("CSV or TSV, .parquet, or JSON lines (.jsonl); or several, one behind the "
                                "other: \"pictures-*.csv\""),
           option("image", &Options::image,
                  "the column of paths; default: the only one that names existing pictures in the first rows")
               .may_be_absent(),
           option("root", &Options::root, "the folder that these paths are below; default: that of the table")
               .as(KeyType::kPath)
               .may_be_absent(),
           option("mask", &Options::mask,
                  "in place of target: the column of paths of masks, whose pixels' values are the targets")
               .may_be_absent(),
           normalize_target_option<Options>(), mask_values_option<Options>(),
           classes_option<Options>("of masks: values are below; default: from the data")},
          with_keys<Options>(target_keys<Options>(),
                             with_keys<Options>(text_file_keys<Options>(), image_read_keys<Options>())))};
}

}  // namespace tutti
