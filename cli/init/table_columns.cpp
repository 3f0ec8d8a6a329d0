#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/init/look.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/tables/column_reasons.h"
#include "io/tables/csv_file.h"
#include "io/tables/parquet_file.h"
#include "io/tables/row_numbers.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCategories = 50;  // of a column of texts that becomes an input
constexpr std::size_t kMostClasses = 1000;
constexpr int64_t kLongestText = 128;  // tokens that a recipe begins with

std::string ending_of(const std::string& file) { return lower_case(fs::path(file).extension().string()); }

// A table, and what the recipe says of how to read it.
struct OpenTable {
  std::unique_ptr<TableFile> file;
  RecipeLines lines = {};
};

RecipeLine delimiter_line(char delimiter) { return {"delimiter", toml_text({delimiter}), "between cells"}; }

OpenTable open_sniffed_table(const std::string& path, const SniffedTable& sniffed) {
  CsvFile::Format format{.delimiter = sniffed.delimiter};
  RecipeLines lines;
  if (sniffed.delimiter != ',') lines.push_back(delimiter_line(sniffed.delimiter));
  if (sniffed.first_is_row) {
    format.header = false;
    lines.push_back({"header", "false", "its first line looks like the next; columns are \"0\", \"1\", ..."});
  } else {
    lines.push_back({"header", "true", "its first line is taken for the names of the columns"});
  }
  return {std::make_unique<CsvFile>(path, format), std::move(lines)};
}

// Cells are separated by a comma or tab by the file's name, or else by what makes several columns.
OpenTable open_table(const std::string& path) {
  if (ending_of(path) == ".parquet") return {open_parquet(path)};
  if (!is_table(path))
    if (const auto sniffed = sniff_table(path)) return open_sniffed_table(path, *sniffed);
  auto file =
      std::make_unique<CsvFile>(path, CsvFile::Format{.delimiter = ending_of(path) == ".csv" ? ',' : '\t'});
  RecipeLines lines;
  if (const auto other = file->other_delimiter()) {
    file = std::make_unique<CsvFile>(path, CsvFile::Format{.delimiter = *other});
    lines.push_back(delimiter_line(*other));
  }
  if (!file->advice().empty())
    lines.push_back({"header", file->has_header() ? "true" : "false", file->advice()});
  return {std::move(file), std::move(lines)};
}

// What all rows of a column hold.
struct LookedAt {
  TableColumn column;
  std::string missing = {};          // the place of the first missing cell
  bool are_classes = true;           // whole numbers from 0 on
  std::set<std::string> texts = {};  // at most kMostClasses + 1
  std::set<int64_t> numbers = {};

  // Whole numbers from 1 without a gap, which may be classes or values.
  bool count_from_1() const {
    return !column.is_text && are_classes && numbers.size() > 1 && *numbers.begin() == 1 &&
           *numbers.rbegin() == std::ssize(numbers);
  }
  bool has_gaps() const { return numbers.empty() || *numbers.rbegin() + 1 != std::ssize(numbers); }
  // As a target.
  std::size_t classes() const {
    if (column.is_text) return texts.size();
    return are_classes && !has_gaps() && numbers.size() > 1 ? numbers.size() : 0;
  }
  // `place`: gives that of the row.
  template <class Place>
  void add(std::string_view text, const Place& place) {
    if (!text.data())
      add_missing(place);
    else if (texts.size() <= kMostClasses)
      texts.emplace(text);
  }
  template <class Place>
  void add(double number, const Place& place) {
    if (std::isnan(number))
      add_missing(place);
    else if (number < 0 || number >= kMostClasses || number != std::floor(number))
      are_classes = false;
    else
      numbers.insert(static_cast<int64_t>(number));
  }
  template <class Place>
  void add_missing(const Place& place) {
    if (missing.empty()) missing = place();
  }
};

const std::set<std::string>& target_names() {
  static const std::set<std::string> names = {"target", "label", "labels", "class", "y"};
  return names;
}

// Dates, lists, and numbers of rows.
bool is_unread(const TableColumn& column) {
  return column.is_other || column.name.empty() ||
         (is_row_number(column) && !target_names().contains(lower_case(column.name)));
}

struct TableColumns {
  std::vector<LookedAt> all;
  std::vector<TableColumn> others;
  std::string advice;                    // the file's
  std::vector<std::string> row_numbers;  // columns that count the rows
  std::size_t target = 0;
  bool is_named = false;  // by its name; else it is the last
  int64_t rows = 0;
};

void require_columns(const std::string& path, const TableColumns& columns) {
  std::vector<const TableColumn*> unread;
  for (const TableColumn& other : columns.others) {
    if (target_names().contains(lower_case(other.name)))
      throw UserError({path}, "column '" + shown(other.name) + "', by its name the target, is " +
                                  other.reason + ", which is not read");
    unread.push_back(&other);
  }
  if (columns.all.size() < 2 || columns.rows == 0)
    throw UserError({path}, "expected two columns at least, an input and a target, and rows" +
                                (unread.empty() ? "" : "; not read: " + reasons_text(unread)));
}

TableColumns columns_of(const std::string& path) {
  const auto file = open_table(path).file;
  TableColumns columns;
  columns.advice = file->advice();
  std::vector<WantedColumn> wanted;
  std::vector<std::size_t> numbers, texts;
  for (std::size_t c = 0; c < file->columns().size(); ++c) {
    const TableColumn& column = file->columns()[c];
    if (is_unread(column)) {
      columns.others.push_back(column);
      continue;
    }
    wanted.push_back({c, column.is_text ? CellType::kText : CellType::kNumber});
    (column.is_text ? texts : numbers).push_back(columns.all.size());
    columns.all.push_back({.column = column});
  }
  const auto place = [&] { return file->place(); };
  RowNumbers row_numbers(numbers.size());
  file->read(wanted, [&](auto number_cells, auto text_cells) {
    row_numbers.add(number_cells);
    for (std::size_t c = 0; c < numbers.size(); ++c) columns.all[numbers[c]].add(number_cells[c], place);
    for (std::size_t c = 0; c < texts.size(); ++c) columns.all[texts[c]].add(text_cells[c], place);
    ++columns.rows;
  });
  require_columns(path, columns);
  std::vector<std::string> names;
  for (const std::size_t c : numbers) names.push_back(columns.all[c].column.name);
  columns.row_numbers = row_numbers.among(names);
  columns.target = columns.all.size() - 1;
  for (const char* name : {"target", "label", "labels", "class", "y"})
    for (std::size_t c = 0; c < columns.all.size() && !columns.is_named; ++c)
      if (lower_case(columns.all[c].column.name) == name) columns.target = c, columns.is_named = true;
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
    if (std::ranges::count(table.file->columns(), target, &TableColumn::name) > 0) return other;
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
  for (RecipeLine& line : open_table(file).lines) lines.push_back(std::move(line));
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
    const bool is_long = one.column.is_text && one.texts.size() > kMostCategories;
    if (is_long && kNames.contains(lower_case(one.column.name))) return &one;
    if (is_long)
      texts.push_back(&one);
    else
      has_inputs = has_inputs || !one.column.is_text || one.missing.empty();
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
      {"text", toml_text(texts.column.name), "the column of texts"},
      {"sequence_length", std::to_string(data.sequence_length), "tokens of a sample; longer texts are cut"}};
}

void add_target_lines(FoundData& data, const TableColumns& columns, const std::string& others = "") {
  data.train.push_back({"target", toml_text(columns.all[columns.target].column.name),
                        std::string(columns.is_named ? "as its name says" : "assumed, since it is the last") +
                            (data.regression ? "; its numbers are values" : "; its values are classes") +
                            others});
  data.train.push_back(
      {"target_type", data.regression ? "\"number\"" : "\"auto\"",
       data.regression ? "or class, if each number is one" : "or number, if they are values"});
}

void add_column_lines(FoundData& data, const TableColumns& columns) {
  const LookedAt& target = columns.all[columns.target];
  std::vector<std::string> one_hot;
  std::vector<const TableColumn*> left_out;
  for (const TableColumn& other : columns.others) left_out.push_back(&other);
  bool has_missing = false;
  for (const LookedAt& one : columns.all) {
    if (&one == &target) continue;
    if (!one.column.is_text)
      ++data.values, has_missing = has_missing || !one.missing.empty();
    else if (one.texts.size() <= kMostCategories && one.missing.empty() && !is_mixed(one.column))
      one_hot.push_back(one.column.name);
    else
      left_out.push_back(&one.column);
  }
  add_target_lines(data, columns, "; every other column of numbers is an input");
  if (!one_hot.empty()) data.train.push_back({"one_hot", list_text(one_hot), "texts: an input for each"});
  if (!left_out.empty()) {
    const std::string unread = "not read: " + reasons_text(left_out);
    data.train.back().comment += (data.train.back().comment.empty() ? "" : "; ") + unread;
    data.notes.push_back(unread);
  }
  std::vector<std::string> row_numbers = columns.row_numbers;
  std::erase(row_numbers, target.column.name);
  if (const std::string text = row_numbers_text(row_numbers); !text.empty()) data.notes.push_back(text);
  data.train.push_back({"normalize", "true", "inputs become (x - mean) / std of their column"});
  if (has_missing)
    data.train.push_back({"missing", "\"mean\"", "some inputs are missing; their column's mean"});
  if (data.values == 0 && one_hot.empty())
    throw UserError({data.name},
                    "found no inputs: columns of numbers, or of a few texts; long texts need a tokenizer: "
                    "--tokenizer tokenizer.json; not read: " +
                        reasons_text(left_out));
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
  const std::string& name = target.column.name;
  if (!target.missing.empty())
    throw UserError({file}, target.missing + ", column '" + shown(name) + "', the target: a missing value");
  FoundData data{.name = fs::path(file).stem(), .count = columns.rows};
  data.classes = static_cast<int64_t>(target.classes());
  data.regression = data.classes == 0;
  const std::string mixed = is_mixed(target.column) ? ": " + no_input_reason(target.column) : "";
  const TableColumn& looked_at = target.column;
  if (looked_at.other_numbers > 0 && looked_at.other_numbers + looked_at.numbers == looked_at.cells)
    throw UserError({file}, "column '" + shown(name) + "', the target: " + no_input_reason(looked_at) +
                                ": write numbers as 1234.5, or classes with a letter");
  if (target.column.is_text && target.texts.size() > kMostClasses)
    throw UserError({file}, "column '" + shown(name) + "', the target, has more than " +
                                std::to_string(kMostClasses) + " different texts: no classes" + mixed);
  if (!columns.advice.empty()) data.notes.push_back(file + ": " + columns.advice);
  if (target.count_from_1())
    data.notes.push_back("the target '" + shown(name) + "' has the whole numbers 1 to " +
                         std::to_string(target.numbers.size()) +
                         ", taken for values; target_type = \"class\" if they are classes");
  if (!mixed.empty())
    data.notes.push_back("the target '" + shown(name) + "' is taken for names of classes" + mixed);
  data.found = std::to_string(columns.rows) + " rows of " +
               std::to_string(columns.all.size() + columns.others.size()) + " columns, " +
               (data.regression ? "a number to predict: " : std::to_string(data.classes) + " classes: ") +
               name;
  const LookedAt* texts = tokenizer.empty() ? nullptr : texts_in(columns);
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
    add_target_lines(data, columns);
  } else {
    add_column_lines(data, columns);
  }
  if (const std::string other = table_beside(file, name); !other.empty()) {
    data.eval = table_lines(data, other, recipe_folder);
    data.eval[0].comment = "columns, numbers and classes are those of [data.train]";
    data.eval.insert(data.eval.end(), more.begin(), more.end());
  }
  return data;
}

}  // namespace tutti
