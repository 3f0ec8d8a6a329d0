#include "data/proposals/picture_table.h"

#include <algorithm>
#include <filesystem>

#include "data/proposals/mask_values.h"
#include "data/proposals/parts.h"
#include "io/image_folders.h"
#include "io/tables/picture_columns.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string texts_of_columns(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + shown(name) + '\'';
  return text;
}

RecipeLines picture_lines(const std::string& file, const PictureColumns& pictures, const RecipeLines& lines,
                          const std::string& comment) {
  RecipeLines all = {{"kind", "\"image_table\"", comment}, path_line(file)};
  all.insert(all.end(), lines.begin(), lines.end());
  all.push_back({"image", toml_text(pictures.image), "the column of pictures' paths"});
  if (!pictures.root.empty())
    all.push_back(path_line(pictures.root, "the folder that they are below", "root"));
  return all;
}

// Folders beside a table that may have its pictures.
std::vector<std::string> folders_of_pictures(const std::string& folder) {
  std::vector<std::string> folders;
  for (const std::string& name : entries_of_folder(folder).folders)
    if (is_name_of_pictures(name) || is_trained_name(name) || is_evaluated_name(name))
      folders.push_back((fs::path(folder) / name).string());
  return folders;
}

}  // namespace

std::optional<PictureColumns> picture_columns_of(TableFile& file) {
  const std::string folder = folder_of_table(file.path());
  std::vector<std::string> columns = picture_columns(file, folder);
  if (columns.empty())
    for (const std::string& root : folders_of_pictures(folder))
      if (columns = picture_columns(file, root); columns.size() == 1)
        return PictureColumns{columns[0], "", root};
  if (columns.empty()) return std::nullopt;
  if (columns.size() == 1) return PictureColumns{columns[0], ""};
  const auto mask = std::ranges::find_if(columns, is_name_of_masks);
  if (columns.size() == 2 && mask != columns.end()) {
    const std::string& image = columns[mask == columns.begin() ? 1 : 0];
    if (!is_name_of_masks(image)) return PictureColumns{image, *mask};
  }
  throw UserError({file.path()}, "several columns have paths of pictures: " + texts_of_columns(columns) +
                                     "; write kind = \"image_table\" and image = \"COLUMN\" in a recipe "
                                     "(docs/data.md)");
}

Proposal picture_table(const std::string& file, const PictureColumns& pictures, const PictureTarget& target,
                       const RecipeLines& lines, int64_t rows) {
  const bool are_values = target.classes == 0;
  Proposal proposal = photographs_in(
      file, grouped(rows) + " pictures in a table, " +
                (are_values ? (target.columns.size() > 1 ? "numbers to predict: " : "a number to predict: ")
                            : std::to_string(target.classes) + " classes: ") +
                texts_of_columns(target.columns));
  proposal.count = rows;
  proposal.train = picture_lines(file, pictures, lines, proposal.summary);
  const bool is_single = target.columns.size() == 1;
  proposal.train.push_back({"target", is_single ? toml_text(target.columns[0]) : toml_texts(target.columns),
                            std::string(target.is_named ? "" : "the only other column; ") +
                                (are_values ? "its numbers are values" : "its values are classes")});
  if (is_single) proposal.train.push_back(target_type_line(are_values));
  if (!are_values) return proposal;
  proposal.train.push_back(normalized_target_line());
  proposal.model.push_back({"loss", "\"mse\"", "the target is a number"});
  proposal.metrics = {"MeanSquaredError", "MeanAbsoluteError"};
  if (is_single) proposal.metrics.emplace_back("R2Score");
  std::get<ImageSamples>(proposal.samples).targets = ImageTargets::kValues;
  return proposal;
}

Proposal masked_picture_table(TableFile& file, const PictureColumns& pictures, const RecipeLines& lines,
                              const std::string& evaluated) {
  const fs::path root = pictures.root.empty() ? folder_of_table(file.path()) : pictures.root;
  const auto column = std::ranges::find(file.columns(), pictures.mask, &TableColumn::name);
  const auto place = static_cast<std::size_t>(column - file.columns().begin());
  std::vector<std::string> masks;
  file.read({{place, CellType::kText}}, [&](auto, auto texts) {
    if (texts[0].empty()) throw UserError({file.path()}, file.place() + ": a picture without a mask");
    masks.push_back((root / texts[0]).string());
  });
  Proposal proposal =
      photographs_in(file.path(), grouped(std::ssize(masks)) + " pictures and their masks in a table");
  proposal.count = std::ssize(masks);
  proposal.train = picture_lines(file.path(), pictures, lines, "");
  proposal.train.push_back({"mask", toml_text(pictures.mask), "the column of masks' paths"});
  if (!evaluated.empty()) {
    proposal.eval = proposal.train;
    proposal.eval[1] = path_line(evaluated, "");
  }
  add_masks(proposal, masks);
  return proposal;
}

}  // namespace tutti
