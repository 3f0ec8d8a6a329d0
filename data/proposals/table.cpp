#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/proposals/look.h"
#include "data/proposals/parts.h"
#include "data/proposals/picture_table.h"
#include "data/proposals/sniffed_table.h"
#include "data/tables/class_guess.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/json_rows.h"
#include "io/tables/column_reasons.h"
#include "io/tables/csv_file.h"
#include "io/tables/json_lines_file.h"
#include "io/tables/parquet_file.h"
#include "io/tables/row_numbers.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCategories = 50;  // of a column of texts that becomes an input
constexpr std::size_t kMostClasses = 1000;
constexpr int64_t kLongestText = 128;  // tokens that a recipe begins with
constexpr const char* kTargetNames[] = {"target", "label", "labels", "class", "y"};

std::string table_ending(const std::string& file) { return lower_case(fs::path(file).extension().string()); }

bool is_table(const std::string& file) {
  const std::string ending = table_ending(file);
  return ending == ".csv" || ending == ".tsv" || ending == ".parquet";
}

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
  if (table_ending(path) == ".parquet") return {open_parquet(path)};
  if (!is_table(path))
    if (const auto sniffed = sniff_table(path)) return open_sniffed_table(path, *sniffed);
  auto file = std::make_unique<CsvFile>(
      path, CsvFile::Format{.delimiter = table_ending(path) == ".csv" ? ',' : '\t'});
  RecipeLines lines;
  if (const auto other = file->other_delimiter()) {
    file = std::make_unique<CsvFile>(path, CsvFile::Format{.delimiter = *other});
    lines.push_back(delimiter_line(*other));
  }
  if (!file->advice().empty())
    lines.push_back({"header", file->has_header() ? "true" : "false", file->advice()});
  return {std::move(file), std::move(lines)};
}

// nullopt for texts of another form.
std::optional<OpenTable> open_json_table(const std::string& file) try {
  return OpenTable{std::make_unique<JsonLinesFile>(file)};
} catch (const UserError&) {
  return std::nullopt;
}

// What all rows of a column hold.
struct ColumnCells {
  TableColumn column;
  std::string missing = {};  // the place of the first missing cell
  // How often each comes; at most kMostClasses + 1.
  std::map<std::string, int64_t, std::less<>> texts = {};
  ClassGuess numbers = {};

  // As a target.
  int64_t classes() const { return column.is_text ? std::ssize(texts) : numbers.classes(); }
  bool is_long_text() const { return column.is_text && texts.size() > kMostCategories; }

  // `place`: gives that of the row.
  template <class Place>
  void add(std::string_view text, const Place& place) {
    if (!text.data())
      add_missing(place);
    else if (const auto known = texts.find(text); known != texts.end())
      ++known->second;
    else if (texts.size() <= kMostClasses)
      texts.emplace(text, 1);
  }
  template <class Place>
  void add(double number, const Place& place) {
    if (std::isnan(number))
      add_missing(place);
    else
      numbers.add(number);
  }
  template <class Place>
  void add_missing(const Place& place) {
    if (missing.empty()) missing = place();
  }
};

bool is_target_name(const std::string& name) {
  return std::ranges::find(kTargetNames, lower_case(name)) != std::end(kTargetNames);
}

// Dates, lists, and numbers of rows.
bool is_unread(const TableColumn& column) {
  return column.is_other || column.name.empty() || (is_row_number(column) && !is_target_name(column.name));
}

struct TableColumns {
  std::vector<ColumnCells> all;
  std::vector<TableColumn> others;
  std::vector<std::string> row_numbers;  // columns that count the rows
  std::size_t target_place = 0;
  bool is_named = false;  // the target, by its name; else it is the last
  int64_t rows = 0;

  const ColumnCells& target() const { return all[target_place]; }
};

void require_columns(const std::string& path, const TableColumns& columns) {
  std::vector<const TableColumn*> unread;
  for (const TableColumn& other : columns.others) {
    if (is_target_name(other.name))
      throw UserError({path}, "column '" + shown(other.name) + "', by its name the target, is " +
                                  other.reason + ", which is not read");
    unread.push_back(&other);
  }
  if (columns.all.size() < 2 || columns.rows == 0)
    throw UserError({path}, "expected two columns at least, an input and a target, and rows" +
                                (unread.empty() ? "" : "; not read: " + reasons_text(unread)));
}

void find_target(TableColumns& columns) {
  columns.target_place = columns.all.size() - 1;
  for (const char* name : kTargetNames)
    for (std::size_t c = 0; c < columns.all.size(); ++c)
      if (lower_case(columns.all[c].column.name) == name) {
        columns.target_place = c;
        columns.is_named = true;
        return;
      }
}

TableColumns columns_of(TableFile& file) {
  TableColumns columns;
  std::vector<WantedColumn> choice;
  std::vector<std::size_t> numbers, texts;
  std::vector<std::string> number_names;
  for (std::size_t c = 0; c < file.columns().size(); ++c) {
    const TableColumn& column = file.columns()[c];
    if (is_unread(column)) {
      columns.others.push_back(column);
      continue;
    }
    choice.push_back({c, column.is_text ? CellType::kText : CellType::kNumber});
    (column.is_text ? texts : numbers).push_back(columns.all.size());
    if (!column.is_text) number_names.push_back(column.name);
    columns.all.push_back({.column = column});
  }
  const auto place = [&] { return file.place(); };
  RowNumbers row_numbers(numbers.size());
  file.read(choice, [&](auto number_cells, auto text_cells) {
    row_numbers.add(number_cells);
    for (std::size_t c = 0; c < numbers.size(); ++c) columns.all[numbers[c]].add(number_cells[c], place);
    for (std::size_t c = 0; c < texts.size(); ++c) columns.all[texts[c]].add(text_cells[c], place);
    ++columns.rows;
  });
  require_columns(file.path(), columns);
  columns.row_numbers = row_numbers.among(number_names);
  find_target(columns);
  return columns;
}

// The file beside this one that has the target, too; "" = none.
std::string table_beside(const std::string& file, const std::string& target) {
  return file_to_evaluate(file, [&](const std::string& other) {
    std::error_code ignored;
    if (!fs::is_regular_file(other, ignored)) return false;
    const OpenTable table = open_table(other);
    return std::ranges::count(table.file->columns(), target, &TableColumn::name) > 0;
  });
}

RecipeLines table_lines(const std::string& file, const OpenTable& table, bool has_texts,
                        const std::string& comment) {
  const char* kind = has_texts                          ? "\"text_table\""
                     : table_ending(file) == ".parquet" ? "\"parquet\""
                                                        : "\"csv\"";
  RecipeLines lines = {{"kind", kind, comment}, path_line(file)};
  lines.insert(lines.end(), table.lines.begin(), table.lines.end());
  return lines;
}

// The column of texts to be classified: by its name, or the only one, where there is no other input. Null if
// there is none.
const ColumnCells* texts_in(const TableColumns& columns) {
  static const std::set<std::string> kNames = {"text",    "sentence", "review", "comment",
                                               "content", "document", "tweet",  "question",
                                               "title",   "body",     "message"};
  std::vector<const ColumnCells*> texts;
  bool has_inputs = false;
  for (const ColumnCells& cells : columns.all) {
    if (&cells == &columns.target()) continue;
    if (cells.is_long_text() && kNames.contains(lower_case(cells.column.name))) return &cells;
    if (cells.is_long_text())
      texts.push_back(&cells);
    else
      has_inputs = has_inputs || !cells.column.is_text || cells.missing.empty();
  }
  return texts.size() == 1 && !has_inputs ? texts[0] : nullptr;
}

// The tokens of the longest text that was looked at, in steps of 8.
int64_t longest_of(const ColumnCells& cells, const Tokenizer& tokenizer) {
  int64_t longest = 1;
  for (const auto& [text, count] : cells.texts)
    longest = std::max(longest, std::ssize(tokenizer.encode(text)));
  return std::min((longest + 7) / 8 * 8, kLongestText);
}

void require_target(const std::string& file, const ColumnCells& target) {
  const TableColumn& column = target.column;
  const std::string quoted = "column '" + shown(column.name) + "', the target";
  if (!target.missing.empty()) throw UserError({file}, target.missing + ", " + quoted + ": a missing value");
  if (column.other_numbers > 0 && column.other_numbers + column.numbers == column.cells)
    throw UserError({file}, quoted + ": " + no_input_reason(column) +
                                ": write numbers as 1234.5, or classes with a letter");
  if (column.is_text && target.texts.size() > kMostClasses)
    throw UserError({file}, quoted + ", has more than " + std::to_string(kMostClasses) +
                                " different texts: no classes" +
                                (is_mixed(column) ? ": " + no_input_reason(column) : ""));
}

std::vector<std::string> remarks_on_target(const ColumnCells& target) {
  const std::string quoted = "the target '" + shown(target.column.name) + "' ";
  std::vector<std::string> remarks;
  if (const int64_t classes = target.column.is_text ? 0 : target.numbers.classes_from_1(); classes > 0)
    remarks.push_back(quoted + "has the whole numbers 1 to " + std::to_string(classes) +
                      ", taken for values; target_type = \"class\" if they are classes");
  if (is_mixed(target.column))
    remarks.push_back(quoted + "is taken for names of classes: " + no_input_reason(target.column));
  if (std::string text = imbalance_text({target.texts.begin(), target.texts.end()}, "rows"); !text.empty())
    remarks.push_back(std::move(text));
  return remarks;
}

void add_target_lines(Proposal& proposal, const TableColumns& columns, const std::string& others = "") {
  const bool are_values = columns.target().classes() == 0;
  proposal.train.push_back(
      {"target", toml_text(columns.target().column.name),
       std::string(columns.is_named ? "as its name says" : "assumed, since it is the last") +
           (are_values ? "; its numbers are values" : "; its values are classes") + others});
  proposal.train.push_back(
      {"target_type", are_values ? "\"number\"" : "\"auto\"",
       are_values ? "or class, if each number is one" : "or number, if they are values"});
}

// What becomes of the columns beside the target.
struct TableInputs {
  std::vector<std::string> one_hot = {};
  std::vector<const TableColumn*> left_out = {};
  bool has_numbers = false, has_missing = false;

  explicit TableInputs(const TableColumns& columns) {
    for (const TableColumn& other : columns.others) left_out.push_back(&other);
    for (const ColumnCells& cells : columns.all) {
      if (&cells == &columns.target()) continue;
      if (!cells.column.is_text)
        has_numbers = true, has_missing = has_missing || !cells.missing.empty();
      else if (!cells.is_long_text() && cells.missing.empty() && !is_mixed(cells.column))
        one_hot.push_back(cells.column.name);
      else
        left_out.push_back(&cells.column);
    }
  }
};

void add_input_lines(Proposal& proposal, const TableColumns& columns, const std::string& file) {
  const TableInputs inputs(columns);
  add_target_lines(proposal, columns, "; every other column of numbers is an input");
  RecipeLines& train = proposal.train;
  if (!inputs.one_hot.empty())
    train.push_back({"one_hot", toml_texts(inputs.one_hot), "texts: an input for each"});
  if (!inputs.left_out.empty()) {
    const std::string unread = "not read: " + reasons_text(inputs.left_out);
    train.back().comment += (train.back().comment.empty() ? "" : "; ") + unread;
    proposal.remarks.push_back(unread);
  }
  std::vector<std::string> row_numbers = columns.row_numbers;
  std::erase(row_numbers, columns.target().column.name);
  if (const std::string text = row_numbers_text(row_numbers); !text.empty()) proposal.remarks.push_back(text);
  train.push_back({"normalize", "true", "inputs become (x - mean) / std of their column"});
  if (inputs.has_missing)
    train.push_back({"missing", "\"mean\"", "some inputs are missing; their column's mean"});
  if (!inputs.has_numbers && inputs.one_hot.empty())
    throw UserError({file},
                    "found no inputs: columns of numbers, or of a few texts; long texts need a tokenizer: "
                    "--tokenizer tokenizer.json; not read: " +
                        reasons_text(inputs.left_out));
}

// The lines about a column of texts, for training and evaluation.
RecipeLines add_texts(Proposal& proposal, const ColumnCells& texts, const std::string& tokenizer,
                      int64_t classes) {
  const std::string path = tokenizer_file(tokenizer);
  const auto reader = Tokenizer::read(path);
  const TextSamples samples{longest_of(texts, *reader), vocabulary_for(reader->vocab_size()), classes};
  proposal.samples = samples;
  return {path_line(path, "of Hugging Face's", "tokenizer"),
          {"text", toml_text(texts.column.name), "the column of texts"},
          {"sequence_length", std::to_string(samples.sequence_length),
           "tokens of a sample; longer texts are cut"}};
}

// The place of a column that the user names.
std::size_t place_of(const TableColumns& columns, const std::string& file, const std::string& name) {
  std::vector<std::string> names;
  for (const ColumnCells& cells : columns.all) names.push_back(cells.column.name);
  const auto named = std::ranges::find(names, name);
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  const std::string near = nearest_name(name, names);
  throw UserError({file}, "--target " + shown(name) + ": there is no such column that is read" +
                              (near.empty() ? "" : "; did you mean '" + shown(near) + "'?"));
}

void choose_target(TableColumns& columns, const std::string& file, const std::vector<std::string>& targets) {
  if (targets.empty()) return;
  if (targets.size() > 1)
    throw UserError({file},
                    "--target: of a table without pictures name a single column; in the recipe, target "
                    "can be a list of columns of numbers");
  columns.target_place = place_of(columns, file, targets[0]);
  columns.is_named = true;
}

bool is_picture_column(const PictureColumns& pictures, const std::string& name) {
  return name == pictures.image || name == pictures.mask;
}

// Those of the user, or the column of a target's name, or the only one beside the pictures.
PictureTarget picture_target(const TableColumns& columns, const std::string& file,
                             const PictureColumns& pictures, const std::vector<std::string>& targets) {
  std::vector<std::size_t> places;
  for (const std::string& name : targets) places.push_back(place_of(columns, file, name));
  if (places.empty() && columns.is_named) places = {columns.target_place};
  PictureTarget target{.is_named = !places.empty()};
  std::string others;
  for (std::size_t c = 0; places.empty() && c < columns.all.size(); ++c)
    if (const std::string& name = columns.all[c].column.name; !is_picture_column(pictures, name))
      target.columns.push_back(name), others += (others.empty() ? "" : ",") + name;
  if (target.columns.size() > 1)
    throw UserError({file}, "a table of pictures, '" + shown(pictures.image) +
                                "', whose target is not clear: give one by --target " +
                                shown(target.columns[0]) + ", or several numbers by --target " +
                                shown(others));
  if (target.columns.size() == 1) places = {place_of(columns, file, target.columns[0])};
  if (places.empty())
    throw UserError({file}, "a table of pictures without a column of targets: `tutti predict` takes such");
  target.columns.clear();
  for (const std::size_t place : places) {
    const ColumnCells& cells = columns.all[place];
    require_target(file, cells);
    target.columns.push_back(cells.column.name);
    if (places.size() > 1 && cells.column.is_text)
      throw UserError(
          {file}, "--target: several targets are numbers, and '" + shown(cells.column.name) + "' has texts");
  }
  if (places.size() == 1) target.classes = columns.all[places[0]].classes();
  return target;
}

Proposal look_at_pictures(const std::string& file, const OpenTable& table, const PictureColumns& pictures,
                          const LookOptions& options) {
  if (!pictures.mask.empty() && options.targets.empty())
    return masked_picture_table(*table.file, pictures, table.lines);
  const TableColumns columns = columns_of(*table.file);
  const PictureTarget target = picture_target(columns, file, pictures, options.targets);
  Proposal proposal = picture_table(file, pictures, target, table.lines, columns.rows);
  std::string unread;
  for (const TableColumn& column : table.file->columns())
    if (!is_picture_column(pictures, column.name) && std::ranges::count(target.columns, column.name) == 0)
      unread += (unread.empty() ? "'" : ", '") + shown(column.name) + '\'';
  if (!unread.empty()) proposal.remarks.push_back(file + ": columns that are not read: " + unread);
  if (target.columns.size() == 1)
    for (const std::string& remark :
         remarks_on_target(columns.all[place_of(columns, file, target.columns[0])]))
      proposal.remarks.push_back(remark);
  if (const std::string other = table_beside(file, target.columns[0]); !other.empty())
    proposal.eval = {{"kind", "\"image_table\""},
                     path_line(other, "its target and classes are those of [data.train]")};
  return proposal;
}

Proposal look_at_rows(const std::string& file, const OpenTable& table, const LookOptions& options) {
  if (const auto pictures = picture_columns_of(*table.file))
    return look_at_pictures(file, table, *pictures, options);
  const std::string& tokenizer = options.tokenizer;
  TableColumns columns = columns_of(*table.file);
  choose_target(columns, file, options.targets);
  const ColumnCells& target = columns.target();
  require_target(file, target);
  const int64_t classes = target.classes();
  Proposal proposal{
      .name = fs::path(file).stem(),
      .summary = std::to_string(columns.rows) + " rows of " +
                 std::to_string(columns.all.size() + columns.others.size()) + " columns, " +
                 (classes == 0 ? "a number to predict: " : std::to_string(classes) + " classes: ") +
                 target.column.name,
      .remarks = remarks_on_target(target),
      .count = columns.rows};
  if (const std::string advice = table.file->advice(); !advice.empty())
    proposal.remarks.insert(proposal.remarks.begin(), file + ": " + advice);
  if (classes == 0) proposal.model.push_back({"loss", "\"mse\"", "the target is a number"});
  const ColumnCells* texts = tokenizer.empty() ? nullptr : texts_in(columns);
  const RecipeLines text_lines = texts ? add_texts(proposal, *texts, tokenizer, classes) : RecipeLines();
  const auto lines_of = [&](const std::string& path, const OpenTable& opened, const std::string& comment) {
    RecipeLines lines = table_lines(path, opened, texts, comment);
    lines.insert(lines.end(), text_lines.begin(), text_lines.end());
    return lines;
  };
  proposal.train = lines_of(file, table, proposal.summary);
  if (texts)
    add_target_lines(proposal, columns);
  else
    add_input_lines(proposal, columns, file);
  if (classes == 0) proposal.metrics = {"MeanSquaredError", "R2Score"};
  if (classes == 0 && !texts)
    proposal.train.push_back({"normalize_target", "true", "targets become (y - mean) / std of their column"});
  if (const std::string other = table_beside(file, target.column.name); !other.empty())
    proposal.eval =
        lines_of(other, open_table(other), "columns, numbers and classes are those of [data.train]");
  return proposal;
}

}  // namespace

std::optional<Proposal> look_at_table(const std::string& file, const LookOptions& options) {
  if (is_table(file)) return look_at_rows(file, open_table(file), options);
  if (!has_json_rows(file)) return std::nullopt;
  const auto table = open_json_table(file);
  if (!table) return std::nullopt;
  const auto pictures = picture_columns_of(*table->file);
  return pictures ? std::optional(look_at_pictures(file, *table, *pictures, options)) : std::nullopt;
}

std::optional<Proposal> look_at_sniffed_table(const std::string& file, const LookOptions& options) {
  const auto sniffed = sniff_table(file);
  if (!sniffed) return std::nullopt;
  return look_at_rows(file, open_sniffed_table(file, *sniffed), options);
}

}  // namespace tutti
