#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/init/look.h"
#include "cli/init/split_folders.h"
#include "io/formats/tar.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEdge = 224;  // of the images that a network gets

bool is_image(const fs::path& file) {
  static const std::set<std::string> kEndings = {".jpg", ".jpeg", ".png", ".webp"};
  return kEndings.contains(lower_case(file.extension().string()));
}

bool is_tar(const fs::path& file) { return lower_case(file.extension().string()) == ".tar"; }

// Images of a folder of class folders.
struct ClassFolders {
  int64_t classes = 0, images = 0;
  bool are_splits = true;  // all are called as parts of data are: "train", "val"
};

ClassFolders class_folders_of(const fs::path& path) {
  ClassFolders found;
  std::error_code ignored;
  for (const auto& folder : fs::directory_iterator(path, ignored)) {
    if (!folder.is_directory(ignored) || folder.path().filename().string().starts_with('.')) continue;
    const int64_t before = found.images;
    for (const auto& file : fs::recursive_directory_iterator(folder, ignored))
      found.images += is_image(file.path());
    if (found.images == before) continue;
    ++found.classes;
    found.are_splits = found.are_splits && is_split_name(folder.path().filename().string());
  }
  return found;
}

std::optional<FoundData> image_folder(const fs::path& path, const std::string& recipe_folder) {
  const SplitFolders split = SplitFolders::of(path);
  const bool is_split = !split.train.empty() && class_folders_of(split.train).classes > 1;
  const fs::path train = is_split ? fs::path(split.train) : path;
  const ClassFolders images = class_folders_of(train);
  if (images.classes < 2 || images.are_splits) return std::nullopt;
  FoundData data = photographs_in(path, std::to_string(images.images) + " images in folders of " +
                                            std::to_string(images.classes) + " classes");
  data.count = images.images;
  data.classes = images.classes;
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
    read_tar(file.bytes(), [&](const TarMember& member) { images += is_image(member.name); });
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
    throw UserError({train->second[0].string()},
                    "holds no .jpg, .jpeg, .png or .webp; tar files are read as WebDataset's");
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
