#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/proposals/look.h"
#include "data/proposals/parts.h"
#include "data/proposals/picture_table.h"
#include "data/proposals/sniffed_table.h"
#include "data/proposals/table_cells.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/json_rows.h"
#include "io/tables/column_reasons.h"
#include "io/tables/csv_file.h"
#include "io/tables/json_lines_file.h"
#include "io/tables/parquet_file.h"
#include "io/tables/picture_columns.h"
#include "io/tables/row_numbers.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestText = 128;  // tokens that a recipe begins with

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

// The column of texts to be classified: by its name, or the only one, where there is no other input or the
// user asks for texts. Null if there is none.
const ColumnCells* texts_in(const TableColumns& columns, bool asks) {
  static const std::set<std::string> kNames = {"text",    "sentence", "review", "comment",
                                               "content", "document", "tweet",  "question",
                                               "title",   "body",     "message"};
  std::vector<const ColumnCells*> texts;
  bool has_inputs = false;
  for (const ColumnCells& cells : columns.all) {
    if (&cells == &columns.target()) continue;
    const bool may_be_texts = cells.is_long_text() || (asks && cells.column.is_text);
    if (may_be_texts && kNames.contains(lower_case(cells.column.name))) return &cells;
    if (may_be_texts)
      texts.push_back(&cells);
    else
      has_inputs = has_inputs || !cells.column.is_text || cells.missing.empty();
  }
  return texts.size() == 1 && (asks || !has_inputs) ? texts[0] : nullptr;
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
  if (target.names_pictures())
    throw UserError({file}, quoted + ", has names of pictures, such as '" +
                                shown(target.texts.begin()->first) + "': --target names another column");
  if (column.is_text && (target.texts.size() > ColumnCells::kMostClasses || target.is_distinct()))
    throw UserError({file},
                    quoted + ", has " +
                        (target.texts.size() > ColumnCells::kMostClasses
                             ? "more than " + std::to_string(ColumnCells::kMostClasses) + " different texts"
                             : std::to_string(target.texts.size()) + " different texts in " +
                                   std::to_string(target.text_cells) + " rows") +
                        ": no classes" + (is_mixed(column) ? ": " + no_input_reason(column) : ""));
}

bool is_name_of_classes(const std::string& name) {
  const std::string lower = lower_case(name);
  return lower == "label" || lower == "labels" || lower == "class";
}

std::vector<std::string> remarks_on_target(const ColumnCells& target) {
  const std::string quoted = "the target '" + shown(target.column.name) + "' ";
  std::vector<std::string> remarks;
  if (const int64_t classes = target.column.is_text ? 0 : target.numbers.classes_from_1(); classes > 0)
    remarks.push_back(quoted + "has the whole numbers 1 to " + std::to_string(classes) +
                      ", taken for values; target_type = \"class\" if they are classes");
  if (const int64_t classes = target.column.is_text ? 0 : target.numbers.classes();
      classes > 2 && !is_name_of_classes(target.column.name))
    remarks.push_back(quoted + "has the whole numbers 0 to " + std::to_string(classes - 1) +
                      ", taken for classes; target_type = \"number\" if they are values");
  if (is_mixed(target.column))
    remarks.push_back(quoted + "is taken for names of classes: " + no_input_reason(target.column));
  if (std::string text = imbalance_text({target.texts.begin(), target.texts.end()}, "rows"); !text.empty())
    remarks.push_back(std::move(text));
  return remarks;
}

void add_target_lines(Proposal& proposal, const TableColumns& columns, const std::string& others = "") {
  const bool are_values = columns.target().classes() == 0;
  proposal.train.push_back({"target", toml_text(columns.target().column.name),
                            std::string(columns.is_chosen  ? "by --target"
                                        : columns.is_named ? "as its name says"
                                                           : "assumed, since it is the last") +
                                (are_values ? "; its numbers are values" : "; its values are classes") +
                                others});
  proposal.train.push_back(target_type_line(are_values));
}

// What becomes of the columns beside the target.
struct TableInputs {
  std::vector<std::string> one_hot = {};
  std::vector<const TableColumn*> left_out = {};
  bool has_numbers = false, has_missing = false;

  bool has_any() const { return has_numbers || !one_hot.empty(); }

  explicit TableInputs(const TableColumns& columns) {
    for (const TableColumn& other : columns.others) left_out.push_back(&other);
    for (const ColumnCells& cells : columns.all) {
      if (&cells == &columns.target()) continue;
      if (!cells.column.is_text)
        has_numbers = true, has_missing = has_missing || !cells.missing.empty();
      else if (!cells.is_long_text() && cells.missing.empty() && !is_mixed(cells.column) &&
               !cells.names_pictures() && !cells.names_parts())
        one_hot.push_back(cells.column.name);
      else
        left_out.push_back(&cells.column);
    }
  }
};

// "" if no column has names of pictures, none of which was found.
std::string lost_pictures_text(const TableColumns& columns, const std::string& file) {
  for (const ColumnCells& cells : columns.all)
    if (cells.names_pictures() && &cells != &columns.target())
      return "; '" + shown(cells.column.name) + "' names pictures, such as '" +
             shown(cells.texts.begin()->first) + "', and there are no such files in " +
             folder_of_table(file) +
             ": kind = \"image_table\" with root = \"FOLDER\" reads them (docs/data.md)";
  return "";
}

void add_remarks_on_parts(Proposal& proposal, const TableColumns& columns) {
  for (const ColumnCells& cells : columns.all)
    if (cells.names_parts() && &cells != &columns.target())
      proposal.remarks.push_back("the column '" + shown(cells.column.name) +
                                 "' says which rows are for training, such as '" +
                                 shown(cells.texts.begin()->first) +
                                 "', and does not divide them here: write the rows of each part to a file of "
                                 "its own, train.csv and val.csv");
}

// A table with a row a time step.
void add_remarks_on_time(Proposal& proposal, const TableColumns& columns, const std::string& file) {
  static const std::set<std::string> kNames = {"time", "date",  "datetime", "timestamp", "ds",
                                               "hour", "month", "week",     "timestep"};
  for (const ColumnCells& cells : columns.all) {
    const std::string& name = cells.column.name;
    if (!kNames.contains(lower_case(name)) || &cells == &columns.target()) continue;
    proposal.remarks.push_back(file + ": rows are samples of their own, though '" + shown(name) +
                               "' looks like a time, and held-out rows are drawn among those of training; in "
                               "a series of rows, window, "
                               "order = \"" +
                               shown(name) +
                               "\" and series = \"COLUMN\" make samples of consecutive rows "
                               "(docs/data.md, Series)");
    proposal.train.push_back({"#window", "24", "in a series: so many rows are a sample"});
    proposal.train.push_back({"#order", toml_text(name), "and the last rows are held out"});
    return;
  }
}

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
  if (const std::string lost = lost_pictures_text(columns, file); !lost.empty() && inputs.has_any())
    proposal.remarks.push_back(lost.substr(2));
  std::vector<std::string> row_numbers = columns.row_numbers;
  std::erase(row_numbers, columns.target().column.name);
  if (const std::string text = row_numbers_text(row_numbers); !text.empty()) proposal.remarks.push_back(text);
  train.push_back({"normalize", "true", "inputs become (x - mean) / std of their column"});
  if (inputs.has_missing)
    train.push_back({"missing", "\"mean\"", "some inputs are missing; their column's mean"});
  if (!inputs.has_any())
    throw UserError({file},
                    "found no inputs: columns of numbers, or of a few texts; long texts need a tokenizer: "
                    "--tokenizer tokenizer.json" +
                        lost_pictures_text(columns, file) + "; not read: " + reasons_text(inputs.left_out));
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
  constexpr std::size_t kMostListed = 20;
  const std::string near = nearest_name(name, names);
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i)
    all += (i == 0 ? "" : ", ") + shown(names[i]);
  throw UserError({file}, "--target " + shown(name) + ": there is no such column that is read" +
                              (near.empty() ? "" : "; did you mean '" + shown(near) + "'?") +
                              "; columns are " + all + (names.size() > kMostListed ? ", ..." : ""));
}

void choose_target(TableColumns& columns, const std::string& file, const std::vector<std::string>& targets) {
  if (targets.empty()) return;
  if (targets.size() > 1)
    throw UserError({file},
                    "--target: of a table without pictures name a single column; in the recipe, target "
                    "can be a list of columns of numbers");
  columns.target_place = place_of(columns, file, targets[0]);
  columns.is_chosen = true;
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
  if (options.names_tokenizer)
    throw UserError({file},
                    "--tokenizer is for texts; the table is of pictures, '" + shown(pictures.image) + "'");
  if (!pictures.mask.empty() && options.targets.empty())
    return masked_picture_table(*table.file, pictures, table.lines, table_beside(file, pictures.mask));
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
  add_remarks_on_parts(proposal, columns);
  const std::string other = table_beside(file, target.columns[0]);
  const auto others_pictures = other.empty() ? std::nullopt : picture_columns_of(*open_table(other).file);
  if (!other.empty() && !others_pictures)
    proposal.remarks.push_back(other + ": its pictures are not found, so the table is not for evaluation");
  if (!others_pictures) return proposal;
  proposal.eval = {{"kind", "\"image_table\""},
                   path_line(other, "its target and classes are those of [data.train]")};
  if (!others_pictures->root.empty()) proposal.eval.push_back(path_line(others_pictures->root, "", "root"));
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
  const ColumnCells* texts = tokenizer.empty() ? nullptr : texts_in(columns, options.names_tokenizer);
  if (options.names_tokenizer && !texts)
    throw UserError({file},
                    "--tokenizer: no column is clearly the text: one called text, sentence, review or "
                    "the like, or the only column of texts beside the target");
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
  if (classes == 0 && !texts) proposal.train.push_back(normalized_target_line());
  add_remarks_on_parts(proposal, columns);
  if (!texts) add_remarks_on_time(proposal, columns, file);
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
