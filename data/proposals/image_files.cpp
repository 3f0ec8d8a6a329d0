#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "data/proposals/look.h"
#include "data/proposals/parts.h"
#include "io/formats/tar.h"
#include "io/image_folders.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

bool is_tar(const fs::path& file) { return lower_case(file.extension().string()) == ".tar"; }

// True if names differ by numbers, most of them: "img_1", "img_2".
bool are_counted(const std::set<std::string>& names) {
  std::set<std::string> without;
  for (std::string name : names) {
    std::erase_if(name, [](unsigned char c) { return std::isdigit(c); });
    without.insert(name);
  }
  return without.size() < 2 || 2 * without.size() <= names.size();
}

// Images of a folder of class folders.
struct ClassFolders {
  int64_t images = 0;
  bool are_splits = true;           // all are called as parts of data are: "train", "val"
  std::vector<std::string> names;   // of folders with images
  ClassSizes counts;                // of their images
  std::vector<std::string> others;  // of other folders
  std::string no_image;             // in the first of those
  bool are_alike = true;            // each has files of the same names, but for their endings
  std::set<std::string> stems;      // those of the first
  LeftOutFiles left_out;

  int64_t classes() const { return std::ssize(names); }
};

void add_class_folder(ClassFolders& folders, const fs::path& path, const std::string& folder) {
  std::set<std::string> stems;
  const int64_t before = folders.images;
  const LeftOutFiles others = for_each_image(path, folder, [&](const std::string& image) {
    ++folders.images;
    if (folders.are_alike) stems.insert(fs::path(image).stem());
  });
  folders.left_out.add(others);
  if (folders.images == before) {
    if (folders.others.empty()) folders.no_image = no_image_text(others);
    folders.others.push_back(folder);
    return;
  }
  if (folders.names.empty()) folders.stems = stems;
  folders.are_alike = folders.are_alike && folders.stems == stems;
  folders.names.push_back(folder);
  folders.counts.emplace_back(folder, folders.images - before);
  folders.are_splits = folders.are_splits && (is_trained_name(folder) || is_evaluated_name(folder));
}

ClassFolders class_folders_of(const fs::path& path) {
  ClassFolders folders;
  const FolderEntries entries = entries_of_folder(path);
  for (const std::string& image : entries.images) folders.left_out.add(image);
  for (const std::string& folder : entries.folders) add_class_folder(folders, path, folder);
  return folders;
}

// Folders of pictures beside one of their masks or annotations are no classes, by their names.
void require_no_masks(const fs::path& path, const ClassFolders& folders) {
  static const std::set<std::string> kOtherPixels = {"depth", "output", "outputs", "matte", "mattes"};
  std::string pictures, masks;
  for (const auto* names : {&folders.names, &folders.others})
    for (const std::string& name : *names) {
      if (is_name_of_masks(name) || kOtherPixels.contains(lower_case(name)))
        masks = name;
      else if (is_name_of_pictures(name))
        pictures = name;
    }
  if (pictures.empty() || masks.empty() || folders.images == 0) return;
  throw UserError({path.string()},
                  "folders of images are read as classes, and '" + pictures + "' and '" + masks +
                      "' look like pictures and their masks or labels, of other names than the pictures: "
                      "masks = \"FOLDER\" needs the same names, and a table, arrays or MDS have a target for "
                      "each picture or pixel (docs/data.md); if they are classes, give them other names");
}

void require_all_classes(const fs::path& path, const ClassFolders& folders) {
  if (folders.others.empty()) return;
  throw UserError({(path / folders.others[0]).string()},
                  folders.no_image + "; each folder beside '" + folders.names[0] + "' and '" +
                      folders.names[1] + "' is a class with images of its own: move the others away");
}

std::vector<std::string> remarks_on(const fs::path& path, const ClassFolders& folders) {
  std::vector<std::string> remarks;
  if (const std::string text = imbalance_text(folders.counts, "images"); !text.empty())
    remarks.push_back(path.string() + ": " + text);
  if (!folders.left_out.empty()) remarks.push_back(path.string() + ": " + folders.left_out.text());
  if (folders.are_alike && !are_counted(folders.stems))
    remarks.push_back(path.string() + ": its folders have files of the same names, such as '" +
                      *folders.stems.begin() + "': are they classes, or parts of one sample?");
  return remarks;
}

// The samples of a tar file, which are as many as its images.
int64_t images_in(const fs::path& tar) {
  const MappedFile file(tar.string());
  int64_t images = 0;
  try {
    read_tar(file.bytes(), [&](const TarMember& member) { images += is_image_name(member.name); });
  } catch (const UserError& error) {
    throw UserError({tar.string()}, error.message());
  }
  return images;
}

// Tar files by their names up to the first digit: "train-000.tar" is one of "train-".
std::map<std::string, std::vector<fs::path>> tar_sets(const fs::path& path) {
  std::map<std::string, std::vector<fs::path>> sets;
  std::error_code ignored;
  const auto add = [&](const fs::path& file) {
    const std::string name = file.stem();
    if (is_tar(file)) sets[name.substr(0, name.find_first_of("0123456789"))].push_back(file);
  };
  if (fs::is_directory(path, ignored))
    for (const auto& entry : fs::directory_iterator(path, ignored)) add(entry.path());
  else
    add(path);
  return sets;
}

RecipeLines shard_lines(const fs::path& path, const std::string& set, const std::vector<fs::path>& files,
                        const std::string& comment = "") {
  return {{"kind", "\"webdataset\"", comment},
          path_line(files.size() == 1 ? files[0] : path / (set + "*.tar"))};
}

std::optional<Proposal> tar_shards(const fs::path& path) {
  const auto sets = tar_sets(path);
  if (sets.empty()) return std::nullopt;
  const auto named = [&](std::string_view name) {
    return std::ranges::find_if(sets,
                                [&](const auto& set) { return lower_case(set.first).starts_with(name); });
  };
  const auto train = named("train") == sets.end() ? sets.begin() : named("train");
  const int64_t images = images_in(train->second[0]);
  if (images == 0)
    throw UserError({train->second[0].string()}, no_image_text() + "; tar files are read as WebDataset's");
  const auto files = std::ssize(train->second);
  Proposal proposal = photographs_in(
      path, std::to_string(files) + " tar files with " + std::to_string(images) + " images in the first");
  proposal.count = images * files;
  proposal.train = shard_lines(path, train->first, train->second, proposal.summary);
  for (const std::string_view name : evaluated_names())
    if (const auto set = named(name); proposal.eval.empty() && set != sets.end() && set != train)
      proposal.eval = shard_lines(path, set->first, set->second);
  return proposal;
}

// Tar files in a folder to train on, and in one to evaluate on.
std::optional<Proposal> tar_folders(const fs::path& path) {
  const SplitFolders split = SplitFolders::of(path);
  if (split.train.empty()) return std::nullopt;
  auto proposal = tar_shards(split.train);
  if (!proposal) return std::nullopt;
  proposal->name = photographs_in(path, "").name;
  if (!split.eval.empty())
    if (const auto eval = tar_shards(split.eval)) proposal->eval = eval->train;
  if (!proposal->eval.empty()) proposal->eval[0].comment.clear();
  return proposal;
}

}  // namespace

std::optional<Proposal> look_at_tar_shards(const std::string& path) {
  auto shards = tar_shards(path);
  return shards ? shards : tar_folders(path);
}

std::optional<Proposal> look_at_image_folder(const std::string& path) {
  const SplitFolders split = SplitFolders::of(path);
  const bool is_split = !split.train.empty() && class_folders_of(split.train).classes() > 1;
  const fs::path train = is_split ? split.train : path;
  const ClassFolders images = class_folders_of(train);
  require_no_masks(train, images);
  if (images.classes() < 2 || images.are_splits) return std::nullopt;
  require_all_classes(train, images);
  Proposal proposal = photographs_in(path, std::to_string(images.images) + " images in folders of " +
                                               std::to_string(images.classes()) + " classes");
  proposal.count = images.images;
  proposal.remarks = remarks_on(train, images);
  proposal.train = {{"kind", "\"image_folder\"", proposal.summary}, path_line(train)};
  if (!is_split || split.eval.empty() || class_folders_of(split.eval).images == 0) return proposal;
  proposal.eval = {{"kind", "\"image_folder\""},
                   path_line(split.eval, ""),
                   path_line(train, "the classes have the numbers of training", "classes_from")};
  return proposal;
}

}  // namespace tutti
