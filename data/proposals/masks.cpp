#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "data/proposals/look.h"
#include "data/proposals/mask_values.h"
#include "data/proposals/parts.h"
#include "io/image_folders.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// A folder of pictures, and that of their masks.
struct PictureAndMaskFolders {
  fs::path pictures, masks;
};

// The folders by their names; nullopt if there is not a single one of each.
std::optional<PictureAndMaskFolders> folders_by_name(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return std::nullopt;
  PictureAndMaskFolders folders;
  for (const std::string& name : entries_of_folder(path.string()).folders) {
    fs::path* folder = is_name_of_masks(name)      ? &folders.masks
                       : is_name_of_pictures(name) ? &folders.pictures
                                                   : nullptr;
    if (!folder) continue;
    if (!folder->empty()) return std::nullopt;
    *folder = path / name;
  }
  if (folders.pictures.empty() || folders.masks.empty()) return std::nullopt;
  return folders;
}

struct PicturePairs {
  int64_t pictures = 0;
  std::vector<std::string> masks = {};  // files of those that have a picture
  int64_t alone = 0;                    // pictures without a mask
};

PicturePairs pairs_in(const PictureAndMaskFolders& folders) {
  const auto name_of = [](const std::string& path) { return fs::path(path).replace_extension().string(); };
  std::map<std::string, std::string> masks;
  for_each_image(folders.masks.string(), "", [&](const std::string& path) {
    masks.emplace(name_of(path), folders.masks.string() + path);
  });
  PicturePairs pairs;
  for_each_image(folders.pictures.string(), "", [&](const std::string& path) {
    const auto mask = masks.find(name_of(path));
    if (mask == masks.end()) {
      ++pairs.alone;
      return;
    }
    ++pairs.pictures;
    pairs.masks.push_back(mask->second);
  });
  return pairs;
}

// Folders to train on and to evaluate on: train/images and val/images, images/train and images/val, or one
// pair alone.
struct SplitPairs {
  PictureAndMaskFolders train;
  std::optional<PictureAndMaskFolders> eval = {};
};

std::optional<SplitPairs> split_pairs(const std::string& path) {
  const SplitFolders parts = SplitFolders::of(path);
  if (!parts.train.empty())
    if (const auto train = folders_by_name(parts.train))
      return SplitPairs{*train, parts.eval.empty() ? std::nullopt : folders_by_name(parts.eval)};
  const auto folders = folders_by_name(path);
  if (!folders) return std::nullopt;
  const SplitFolders pictures = SplitFolders::of(folders->pictures.string()),
                     masks = SplitFolders::of(folders->masks.string());
  if (pictures.train.empty() || masks.train.empty()) return SplitPairs{*folders};
  SplitPairs split{{pictures.train, masks.train}};
  if (!pictures.eval.empty() && !masks.eval.empty())
    split.eval = PictureAndMaskFolders{pictures.eval, masks.eval};
  return split;
}

RecipeLines mask_folder_lines(const PictureAndMaskFolders& folders) {
  return {{"kind", "\"image_folder\""},
          path_line(folders.pictures.string(), ""),
          path_line(folders.masks.string(), "of the same names as the pictures", "masks")};
}

}  // namespace

std::optional<Proposal> look_at_masks(const std::string& path) {
  const auto split = split_pairs(path);
  if (!split) return std::nullopt;
  const PicturePairs pairs = pairs_in(split->train);
  if (pairs.pictures == 0) return std::nullopt;
  Proposal proposal = photographs_in(path, grouped(pairs.pictures) + " pictures and their masks");
  proposal.count = pairs.pictures;
  proposal.train = mask_folder_lines(split->train);
  if (split->eval && pairs_in(*split->eval).pictures > 0) proposal.eval = mask_folder_lines(*split->eval);
  if (pairs.alone > 0)
    proposal.remarks.push_back(split->train.pictures.string() + ": " + grouped(pairs.alone) +
                               " pictures have no mask of their name, and are left out");
  add_masks(proposal, pairs.masks);
  return proposal;
}

}  // namespace tutti
