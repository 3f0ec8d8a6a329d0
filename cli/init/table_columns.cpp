#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/init/look.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/formats/file_head.h"
#include "io/tables/csv_file.h"
#include "io/tables/parquet_file.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCategories = 50;  // of a column of texts that becomes an input
constexpr std::size_t kMostClasses = 1000;
constexpr int64_t kLongestText = 128;                     // tokens that a recipe begins with
constexpr std::size_t kMostNames = std::size_t{1} << 16;  // bytes of columns' names that are looked at

std::string ending_of(const std::string& file) { return lower_case(fs::path(file).extension().string()); }

// What separates the cells: a comma or tab by the file's name; a semicolon, as spreadsheets of many languages
// write it, if the names have that alone.
char delimiter_of(const std::string& file) {
  if (ending_of(file) != ".csv") return '\t';
  const std::vector<uint8_t> head = file_head(file, kMostNames);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::string_view names = text.substr(0, text.find_first_of("\r\n"));
  return names.find(',') == names.npos && names.find(';') != names.npos ? ';' : ',';
}

std::unique_ptr<TableFile> open_table(const std::string& file) {
  if (ending_of(file) == ".parquet") return open_parquet(file);
  return std::make_unique<CsvFile>(file, CsvFile::Format{.delimiter = delimiter_of(file)});
}

// What all rows of a column hold.
struct LookedAt {
  std::string name;
  bool is_text = false;
  bool has_missing = false;
  bool are_classes = true;           // whole numbers from 0 on
  std::set<std::string> texts = {};  // at most kMostClasses + 1
  std::set<int64_t> numbers = {};

  bool has_gaps() const { return numbers.empty() || *numbers.rbegin() + 1 != std::ssize(numbers); }
  // As a target.
  std::size_t classes() const {
    if (is_text) return texts.size();
    return are_classes && !has_gaps() && numbers.size() > 1 ? numbers.size() : 0;
  }
  void add(std::string_view text) {
    if (!text.data())
      has_missing = true;
    else if (texts.size() <= kMostClasses)
      texts.emplace(text);
  }
  void add(double number) {
    if (std::isnan(number))
      has_missing = true;
    else if (number < 0 || number >= kMostClasses || number != std::floor(number))
      are_classes = false;
    else
      numbers.insert(static_cast<int64_t>(number));
  }
};

struct TableColumns {
  std::vector<LookedAt> all;
  std::vector<std::string> others;  // dates, lists, ...
  std::size_t target = 0;
  bool is_named = false;  // by its name; else it is the last
  int64_t rows = 0;
};

TableColumns columns_of(const std::string& path) {
  const auto file = open_table(path);
  TableColumns columns;
  std::vector<WantedColumn> wanted;
  std::vector<std::size_t> numbers, texts;
  for (std::size_t c = 0; c < file->columns().size(); ++c) {
    const auto& [name, is_text, is_other] = file->columns()[c];
    if (is_other) columns.others.push_back(name);
    if (name.empty() || is_other) continue;
    wanted.push_back({c, is_text ? CellType::kText : CellType::kNumber});
    (is_text ? texts : numbers).push_back(columns.all.size());
    columns.all.push_back({.name = name, .is_text = is_text});
  }
  file->read(wanted, [&](auto number_cells, auto text_cells) {
    for (std::size_t c = 0; c < numbers.size(); ++c) columns.all[numbers[c]].add(number_cells[c]);
    for (std::size_t c = 0; c < texts.size(); ++c) columns.all[texts[c]].add(text_cells[c]);
    ++columns.rows;
  });
  if (columns.all.size() < 2 || columns.rows == 0)
    throw UserError({path}, "expected two columns at least, an input and a target, and rows");
  columns.target = columns.all.size() - 1;
  for (const char* name : {"target", "label", "labels", "class", "y"})
    for (std::size_t c = 0; c < columns.all.size() && !columns.is_named; ++c)
      if (lower_case(columns.all[c].name) == name) columns.target = c, columns.is_named = true;
  return columns;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + toml_text(name);
  return '[' + text + ']';
}

// The file beside this one that has the same columns: val.csv beside train.csv; "" = none.
std::string table_beside(const fs::path& file, const std::string& target) {
  const std::string name = file.filename();
  const std::size_t at = name.rfind("train");
  if (at == std::string::npos) return "";
  for (const char* word : {"val", "valid", "validation", "eval", "dev", "test"}) {
    const fs::path other = file.parent_path() / (name.substr(0, at) + word + name.substr(at + 5));
    std::error_code ignored;
    if (!fs::is_regular_file(other, ignored)) continue;
    const auto table = open_table(other);
    if (std::ranges::count(table->columns(), target, &TableColumn::name) > 0) return other;
  }
  return "";
}

RecipeLines table_lines(const FoundData& data, const std::string& file, const std::string& recipe_folder) {
  const bool is_parquet = ending_of(file) == ".parquet";
  const char* kind = data.samples == SampleKind::kTextClasses ? "\"text_table\""
                     : is_parquet                             ? "\"parquet\""
                                                              : "\"csv\"";
  RecipeLines lines = {{"kind", kind, data.found},
                       {"path", recipe_path(file, recipe_folder), "relative to this file"}};
  if (!is_parquet && delimiter_of(file) == ';') lines.push_back({"delimiter", "\";\"", "between cells"});
  return lines;
}

// The column of texts to be classified: by its name, or the only one, where there is no other input. Null if
// there is none.
const LookedAt* texts_in(const TableColumns& columns) {
  static const std::set<std::string> kNames = {"text",    "sentence", "review", "comment",
                                               "content", "document", "tweet",  "question",
                                               "title",   "body",     "message"};
  std::vector<const LookedAt*> texts;
  bool has_inputs = false;
  for (const LookedAt& one : columns.all) {
    if (&one == &columns.all[columns.target]) continue;
    const bool is_long = one.is_text && one.texts.size() > kMostCategories;
    if (is_long && kNames.contains(lower_case(one.name))) return &one;
    if (is_long)
      texts.push_back(&one);
    else
      has_inputs = has_inputs || !one.is_text || !one.has_missing;
  }
  return texts.size() == 1 && !has_inputs ? texts[0] : nullptr;
}

// Those of the texts that were looked at, in steps of 8.
int64_t longest_of(const LookedAt& column, const Tokenizer& tokenizer) {
  int64_t longest = 1;
  for (const std::string& text : column.texts)
    longest = std::max(longest, std::ssize(tokenizer.encode(text)));
  return std::min((longest + 7) / 8 * 8, kLongestText);
}

RecipeLines text_lines(const FoundData& data, const LookedAt& texts, const std::string& tokenizer,
                       const std::string& recipe_folder) {
  return {
      {"tokenizer", recipe_path(tokenizer, recipe_folder), "of Hugging Face's"},
      {"text", toml_text(texts.name), "the column of texts"},
      {"sequence_length", std::to_string(data.sequence_length), "tokens of a sample; longer texts are cut"}};
}

void add_column_lines(FoundData& data, const TableColumns& columns) {
  const LookedAt& target = columns.all[columns.target];
  std::vector<std::string> one_hot, left_out = columns.others;
  bool has_missing = false;
  for (const LookedAt& one : columns.all) {
    if (&one == &target) continue;
    if (!one.is_text)
      ++data.values, has_missing = has_missing || one.has_missing;
    else if (one.texts.size() <= kMostCategories && !one.has_missing)
      one_hot.push_back(one.name);
    else
      left_out.push_back(one.name);
  }
  data.train.push_back({"target", toml_text(target.name),
                        std::string(columns.is_named ? "as its name says" : "assumed, since it is the last") +
                            (data.regression ? "; its numbers are values" : "; its values are classes") +
                            "; every other column of numbers is an input"});
  data.train.push_back(
      {"target_type", data.regression ? "\"number\"" : "\"auto\"",
       data.regression ? "or class, if each number is one" : "or number, if they are values"});
  if (!one_hot.empty()) data.train.push_back({"one_hot", list_text(one_hot), "texts: an input for each"});
  if (!left_out.empty())
    data.train.back().comment +=
        (data.train.back().comment.empty() ? "" : "; ") + std::string("not read: ") + list_text(left_out);
  data.train.push_back({"normalize", "true", "inputs become (x - mean) / std of their column"});
  if (has_missing)
    data.train.push_back({"missing", "\"mean\"", "some inputs are missing; their column's mean"});
  if (data.values == 0 && one_hot.empty())
    throw UserError({data.name},
                    "found no inputs: columns of numbers, or of a few texts; texts to be classified need a "
                    "tokenizer, and classes: --tokenizer tokenizer.json");
}

}  // namespace

bool is_table(const std::string& file) {
  const std::string ending = ending_of(file);
  return ending == ".csv" || ending == ".tsv" || ending == ".parquet";
}

FoundData look_into_table(const std::string& file, const std::string& recipe_folder,
                          const std::string& tokenizer) {
  const TableColumns columns = columns_of(file);
  const LookedAt& target = columns.all[columns.target];
  if (target.has_missing)
    throw UserError({file}, "column '" + shown(target.name) + "', the target, lacks values");
  FoundData data{.name = fs::path(file).stem(), .count = columns.rows};
  data.classes = static_cast<int64_t>(target.classes());
  data.regression = data.classes == 0;
  if (target.is_text && target.texts.size() > kMostClasses)
    throw UserError({file}, "column '" + shown(target.name) + "', the target, has more than " +
                                std::to_string(kMostClasses) + " different texts: no classes");
  data.found = std::to_string(columns.rows) + " rows of " +
               std::to_string(columns.all.size() + columns.others.size()) + " columns, " +
               (data.regression ? "a number to predict: " : std::to_string(data.classes) + " classes: ") +
               target.name;
  const LookedAt* texts = data.classes > 0 && !tokenizer.empty() ? texts_in(columns) : nullptr;
  RecipeLines more;
  if (texts) {
    const std::string reads = tokenizer_file(tokenizer);
    const auto reader = Tokenizer::read(reads);
    data.samples = SampleKind::kTextClasses;
    data.vocabulary = vocabulary_for(reader->vocab_size());
    data.sequence_length = longest_of(*texts, *reader);
    more = text_lines(data, *texts, reads, recipe_folder);
  }
  data.train = table_lines(data, file, recipe_folder);
  if (texts) {
    data.train.insert(data.train.end(), more.begin(), more.end());
    data.train.push_back({"target", toml_text(target.name), "its values are classes"});
  } else {
    add_column_lines(data, columns);
  }
  if (const std::string other = table_beside(file, target.name); !other.empty()) {
    data.eval = table_lines(data, other, recipe_folder);
    data.eval[0].comment = "columns, numbers and classes are those of [data.train]";
    data.eval.insert(data.eval.end(), more.begin(), more.end());
  }
  return data;
}

}  // namespace tutti
