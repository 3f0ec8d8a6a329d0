#include "data/readers/pictures/image_table.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "data/readers/opened.h"
#include "data/readers/table_files.h"
#include "data/tables/table_rows.h"
#include "io/tables/picture_columns.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

std::string quoted_columns(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += (i == 0 ? "'" : ", '") + shown(names[i]) + '\'';
  return text + (names.size() > kMostNamed ? ", ..." : "");
}

// The folder that all tables lie in, or below.
std::string folder_of_tables(const TableFiles& files) {
  std::filesystem::path common = folder_of_table(files.at(0)->path());
  for (const auto& file : files) {
    const std::filesystem::path folder = folder_of_table(file->path());
    while (*folder.lexically_relative(common).begin() == ".." && common != ".")
      common = common.has_parent_path() ? common.parent_path() : ".";
  }
  return common.string();
}

std::string image_column(TableFile& file, const ImageTable::Options& options, const std::string& root) {
  if (!options.image.empty()) return require_column(file, options.image, "image").name;
  std::vector<std::string> columns = picture_columns(file, root);
  std::erase(columns, options.mask);
  if (columns.size() == 1) return columns[0];
  std::vector<std::string> texts;
  for (const TableColumn& column : file.columns())
    if (column.is_text) texts.push_back(column.name);
  throw WrongKey(
      "image", {},
      columns.empty()
          ? "expected image = \"COLUMN\" or another root: no column has the path of a picture below " + root +
                " in its first rows" +
                (texts.empty() ? "; " + file.path() + " has no texts"
                               : "; columns of texts are " + quoted_columns(texts))
          : "expected image = \"COLUMN\": pictures are named by " + quoted_columns(columns));
}

// "" if all columns are read.
std::string unread_columns(const TableFile& file, std::vector<std::string> read, const FittedTable& fitted) {
  read.insert(read.end(), fitted.target.begin(), fitted.target.end());
  std::vector<std::string> names;
  for (const TableColumn& column : file.columns())
    if (std::ranges::find(read, column.name) == read.end()) names.push_back(column.name);
  return names.empty() ? "" : "columns that are not read: " + quoted_columns(names);
}

}  // namespace

// The rows of tables as pictures and targets.
struct ImageTable::Reading {
  const TableFiles& files;
  const Options& options;
  FittedTable fitted;
  bool fits;  // the training's table

  ImageSourcePtr source() {
    const std::string& first = files.at(0)->path();
    const std::string root = options.root.empty() ? folder_of_tables(files) : options.root;
    const bool with_target = fits ? !fitted.target.empty() : has_targets(files, fitted);
    TableRows rows(fitted, {.fits = fits,
                            .normalizes_target = fits && options.normalize_target,
                            .may_guess_classes = fits && options.targets.type == TableTarget::kAuto,
                            .with_target = with_target,
                            .ignore_index = options.targets.ignore_index,
                            .rows = options.rows});
    PictureFiles pictures(root), masks(root);
    std::string image;
    const bool with_masks =
        !options.mask.empty() && (!options.may_lack_masks || column_named(*files[0], options.mask));
    for (const auto& file : files) {
      if (image.empty()) image = image_column(*file, options, folder_of_paths(*file));
      const std::vector<std::string> columns = path_columns(*file, image, with_masks);
      ColumnChoice choice(*file);
      for (const std::string& column : columns) choice.add(column, CellType::kText);
      if (with_target) choice.add_targets(fitted);
      rows.read(*file, choice.cells(), [&](auto, auto texts) {
        add_file(pictures, root, *file, image, texts[0]);
        if (with_masks) add_file(masks, root, *file, options.mask, texts[1]);
      });
    }
    rows.finish();
    if (rows.rows() == 0) throw UserError({first}, "names no image");
    require_classes(rows, first);
    const std::string advice =
        advice_lines(files, {fits ? unread_columns(*files[0], {image, options.mask}, fitted) : "",
                             fits && with_target ? options.targets.advice(*files[0], fitted.target_is) : "",
                             rows.advice()});
    std::shared_ptr<PictureSource> source;
    if (with_masks)
      source = std::make_shared<MaskedPictures>(std::move(pictures), std::move(masks), options.masks);
    else
      source = std::shared_ptr<ImageTable>(
          new ImageTable(std::move(pictures), rows.fitted(), with_target ? targets_of(rows) : at::Tensor()));
    source->set_advice(advice);
    return source;
  }

  // Of the picture and, with masks, of its mask.
  std::vector<std::string> path_columns(const TableFile& file, const std::string& image,
                                        bool with_masks) const {
    ColumnUses uses;
    uses.add("target", fitted.target);
    uses.add("image", {image});
    if (!with_masks) return {image};
    uses.add("mask", {require_column(file, options.mask, "mask").name});
    return {image, options.mask};
  }

  std::string folder_of_paths(const TableFile& file) const {
    return options.root.empty() ? folder_of_table(file.path()) : options.root;
  }

  void add_file(PictureFiles& to, const std::string& root, const TableFile& file, const std::string& column,
                std::string_view path) const {
    const auto fail = [&](const std::string& message) {
      throw UserError({file.path()}, file.place() + ", column '" + shown(column) + "': " + message);
    };
    if (path.empty()) fail("a missing path");
    const std::filesystem::path folder = folder_of_paths(file);
    to.add(folder == root ? std::string(path)
                          : picture_file(folder.lexically_relative(root), std::string(path)));
    std::error_code ignored;
    if (!options.must_exist || to.size() > kLookedFor) return;
    const std::string picture = to.file(to.size() - 1);
    if (!std::filesystem::is_regular_file(picture, ignored))
      fail("there is no such picture: " + shown(picture));
  }

  // Numbers beyond the classes of the training.
  void require_classes(const TableRows& rows, const std::string& file) const {
    if (fits || fitted.target_is != FittedTable::Target::kClass) return;
    for (std::size_t i = 0; i < rows.classes.size(); ++i)
      if (rows.classes[i] >= fitted.num_classes && rows.classes[i] != options.targets.ignore_index)
        throw UserError({file}, "sample " + std::to_string(i) + ", column '" + shown(fitted.target[0]) +
                                    "': class " + std::to_string(rows.classes[i]) + " is not in [0, " +
                                    std::to_string(fitted.num_classes) + "), as in training");
  }

  static at::Tensor targets_of(const TableRows& rows) {
    if (!rows.classes.empty()) return at::tensor(rows.classes);
    const at::Tensor numbers = at::tensor(rows.targets);
    const bool is_list = rows.fitted().target_is == FittedTable::Target::kNumbers;
    return is_list ? numbers.view({rows.rows(), -1}) : numbers;
  }
};

ImageSourcePtr ImageTable::open(const TableFiles& files, const Options& options) {
  ColumnUses().add("classes", options.targets.classes);
  FittedTable chosen{.target = options.targets.columns,
                     .target_is = options.targets.found_in(*files.at(0)),
                     .classes = options.targets.classes};
  return Reading{files, options, std::move(chosen), /*fits=*/true}.source();
}

ImageSourcePtr ImageTable::open(const TableFiles& files, const Options& options, const FittedTable& fitted) {
  return Reading{files, options, fitted, /*fits=*/false}.source();
}

ImageTable::ImageTable(PictureFiles pictures, FittedTable fitted, at::Tensor targets)
    : PictureSource(std::move(pictures)), fitted_(std::move(fitted)), targets_(std::move(targets)) {}

std::optional<ImageTarget> ImageTable::target_form() const {
  if (!targets_.defined()) return std::nullopt;
  return ImageTarget{targets_.sizes().slice(1).vec(), targets_.scalar_type()};
}

uint64_t ImageTable::digest() const {
  uint64_t rows = PictureSource::digest();
  if (targets_.defined()) rows = XXH3_64bits_withSeed(targets_.const_data_ptr(), targets_.nbytes(), rows);
  return fitted_.target.empty() ? rows : fitted_.digest(rows);
}

namespace {

void require_uses(const ImageTableOptions& options, const Setting& section) {
  if (!options.mask.empty() && options.target) section.at("target").fail_key("excludes mask");
  for (const char* key : {"mask_values", "num_classes"})
    if (options.mask.empty() && section.has(key)) section.at(key).fail_key("is for masks");
}

}  // namespace

DatasetPtr ImageTableOptions::make(const Setting& section, const DataEnvironment& environment) const {
  require_delimiter(delimiter, section);
  require_uses(*this, section);
  const ImageTable::Options table{.image = image,
                                  .root = root,
                                  .mask = mask,
                                  .masks = {.values = mask_values,
                                            .classes = num_classes > 0 ? num_classes : std::ssize(classes),
                                            .ignore_index = environment.ignore_index,
                                            .most_pixels = max_image_pixels},
                                  .may_lack_masks = environment.fitted.has_value(),
                                  .must_exist = on_bad_sample == OnBadSample::kError,
                                  .targets = targets_of(*this, environment.ignore_index),
                                  .normalize_target = normalize_target,
                                  .rows = environment.rows};
  const auto paths = files_of(section.at("path"));
  const auto fitted = fitted_targets(*this, section, environment.fitted);
  DatasetPtr data = opened(section, [&] {
    const TableFiles files = open_table_files(paths, *this);
    return std::make_shared<const ImageFiles>(
        fitted ? ImageTable::open(files, table, *fitted) : ImageTable::open(files, table), *this);
  });
  if (environment.fitted && !fitted) require_numbered(*data, *this, section);
  return data;
}

}  // namespace tutti
