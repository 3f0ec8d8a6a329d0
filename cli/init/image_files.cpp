#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "cli/init/look.h"
#include "cli/init/split_folders.h"
#include "io/formats/tar.h"
#include "io/image_folders.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEdge = 224;  // of the images that a network gets

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
  std::vector<std::string> others;  // of other folders
  std::string no_image;             // in the first of those
  bool are_alike = true;            // each has files of the same names, but for their endings
  std::set<std::string> stems;      // those of the first
  LeftOutFiles left_out;

  int64_t classes() const { return std::ssize(names); }
};

void add_class_folder(ClassFolders& found, const fs::path& path, const std::string& folder) {
  std::set<std::string> stems;
  const int64_t before = found.images;
  const LeftOutFiles others = for_each_image(path, folder, [&](const std::string& image) {
    ++found.images;
    if (found.are_alike) stems.insert(fs::path(image).stem());
  });
  found.left_out.add(others);
  if (found.images == before) {
    if (found.others.empty()) found.no_image = no_image_text(others);
    found.others.push_back(folder);
    return;
  }
  if (found.names.empty()) found.stems = stems;
  found.are_alike = found.are_alike && found.stems == stems;
  found.names.push_back(folder);
  found.are_splits = found.are_splits && is_split_name(folder);
}

ClassFolders class_folders_of(const fs::path& path) {
  ClassFolders found;
  const FolderEntries entries = entries_of_folder(path);
  for (const std::string& image : entries.images) found.left_out.add(image);
  for (const std::string& folder : entries.folders) add_class_folder(found, path, folder);
  return found;
}

bool has_word(const std::string& name, std::span<const std::string_view> words) {
  constexpr std::size_t kShort = 3;  // letters of a word that is not looked for within others
  const std::string lower = lower_case(name);
  return std::ranges::any_of(words, [&](std::string_view word) {
    return word.size() > kShort ? lower.find(word) != std::string::npos : lower == word;
  });
}

// Folders of pictures beside one of their masks or annotations are no classes, by their names.
void require_no_masks(const fs::path& path, const ClassFolders& found) {
  constexpr std::string_view kPictures[] = {"image", "img", "imgs",  "picture", "photo",
                                            "input", "rgb", "frame", "color"};
  constexpr std::string_view kMasks[] = {"mask", "label",  "annot",  "segment", "truth", "target", "depth",
                                         "gt",   "gtfine", "output", "matte",   "ann",   "seg",    "anns"};
  std::string pictures, masks;
  for (const auto* names : {&found.names, &found.others})
    for (const std::string& name : *names) {
      if (has_word(name, kMasks))
        masks = name;
      else if (has_word(name, kPictures))
        pictures = name;
    }
  if (pictures.empty() || masks.empty() || found.images == 0) return;
  throw UserError({path.string()},
                  "folders of images are read as classes, and '" + pictures + "' and '" + masks +
                      "' look like pictures and their masks or labels: arrays or MDS have a target for each "
                      "picture or pixel (docs/data.md); if they are classes, give them other names");
}

void require_all_classes(const fs::path& path, const ClassFolders& found) {
  if (found.others.empty()) return;
  throw UserError({(path / found.others[0]).string()},
                  found.no_image + "; each folder beside '" + found.names[0] + "' and '" + found.names[1] +
                      "' is a class with images of its own: move the others away");
}

std::vector<std::string> notes_on(const fs::path& path, const ClassFolders& found) {
  std::vector<std::string> notes;
  if (!found.left_out.empty()) notes.push_back(path.string() + ": " + found.left_out.text());
  if (found.are_alike && !are_counted(found.stems))
    notes.push_back(path.string() + ": its folders have files of the same names, such as '" +
                    *found.stems.begin() + "': are they classes, or parts of one sample?");
  return notes;
}

std::optional<FoundData> image_folder(const fs::path& path, const std::string& recipe_folder) {
  const SplitFolders split = SplitFolders::of(path);
  const bool is_split = !split.train.empty() && class_folders_of(split.train).classes() > 1;
  const fs::path train = is_split ? fs::path(split.train) : path;
  const ClassFolders images = class_folders_of(train);
  require_no_masks(train, images);
  if (images.classes() < 2 || images.are_splits) return std::nullopt;
  require_all_classes(train, images);
  FoundData data = photographs_in(path, std::to_string(images.images) + " images in folders of " +
                                            std::to_string(images.classes()) + " classes");
  data.count = images.images;
  data.classes = images.classes();
  data.notes = notes_on(train, images);
  const std::string train_path = recipe_path(train, recipe_folder);
  data.train = {{"kind", "\"image_folder\"", data.found}, {"path", train_path, "relative to this file"}};
  if (is_split && !split.eval.empty() && class_folders_of(split.eval).images > 0)
    data.eval = {{"kind", "\"image_folder\""},
                 {"path", recipe_path(split.eval, recipe_folder)},
                 {"classes_from", train_path, "the classes have the numbers of training"}};
  return data;
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
                        const std::string& recipe_folder) {
  const fs::path all = files.size() == 1 ? files[0] : path / (set + "*.tar");
  return {{"kind", "\"webdataset\""}, {"path", recipe_path(all, recipe_folder), "relative to this file"}};
}

std::optional<FoundData> tar_shards(const fs::path& path, const std::string& recipe_folder) {
  const auto sets = tar_sets(path);
  if (sets.empty()) return std::nullopt;
  const auto named = [&](std::string_view name) {
    return std::ranges::find_if(sets,
                                [&](const auto& one) { return lower_case(one.first).starts_with(name); });
  };
  const auto train = named("train") == sets.end() ? sets.begin() : named("train");
  const int64_t in_first = images_in(train->second[0]);
  if (in_first == 0)
    throw UserError({train->second[0].string()}, no_image_text() + "; tar files are read as WebDataset's");
  const auto files = std::ssize(train->second);
  FoundData data = photographs_in(
      path, std::to_string(files) + " tar files with " + std::to_string(in_first) + " images in the first");
  data.count = in_first * files;
  data.train = shard_lines(path, train->first, train->second, recipe_folder);
  data.train[0].comment = data.found;
  for (const std::string_view name : evaluated_names())
    if (const auto set = named(name); data.eval.empty() && set != sets.end() && set != train)
      data.eval = shard_lines(path, set->first, set->second, recipe_folder);
  return data;
}

// Tar files in a folder to train on, and in one to evaluate on.
std::optional<FoundData> tar_folders(const fs::path& path, const std::string& recipe_folder) {
  const SplitFolders split = SplitFolders::of(path);
  if (split.train.empty()) return std::nullopt;
  auto found = tar_shards(split.train, recipe_folder);
  if (found && !split.eval.empty())
    if (const auto eval = tar_shards(split.eval, recipe_folder)) found->eval = eval->train;
  if (!found) return std::nullopt;
  found->name = photographs_in(path, "").name;
  if (!found->eval.empty()) found->eval[0].comment.clear();
  return found;
}

}  // namespace

FoundData photographs_in(const std::string& place, const std::string& found) {
  const fs::path whole = fs::absolute(place).lexically_normal();
  FoundData data{.name = (whole.has_filename() ? whole : whole.parent_path()).stem(),
                 .found = found,
                 .samples = SampleKind::kImages};
  data.height = data.width = kEdge;
  data.bytes = data.integers = data.may_flip = data.files = true;
  data.mean = {0.485, 0.456, 0.406};
  data.std = {0.229, 0.224, 0.225};
  return data;
}

std::optional<FoundData> look_into_images(const std::string& path, const std::string& recipe_folder) {
  if (auto found = tar_shards(path, recipe_folder)) return found;
  if (auto found = tar_folders(path, recipe_folder)) return found;
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? image_folder(path, recipe_folder) : std::nullopt;
}

}  // namespace tutti
