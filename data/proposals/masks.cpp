#include <filesystem>
#include <optional>
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

MaskedImages images_in(const PictureAndMaskFolders& folders) {
  return masked_images(folders.pictures.string(), folders.masks.string());
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
  const MaskedImages images = images_in(split->train);
  const int64_t pictures = std::ssize(images.pairs);
  if (pictures == 0) return std::nullopt;
  Proposal proposal = photographs_in(path, grouped(pictures) + " pictures and their masks");
  proposal.count = pictures;
  proposal.train = mask_folder_lines(split->train);
  if (split->eval && !images_in(*split->eval).pairs.empty()) proposal.eval = mask_folder_lines(*split->eval);
  if (!images.without_mask.empty())
    proposal.remarks.push_back(split->train.pictures.string() + ": " +
                               grouped(std::ssize(images.without_mask)) +
                               " pictures have no mask of their name, and are left out");
  std::vector<std::string> masks;
  for (const auto& [picture, mask] : images.pairs) masks.push_back((split->train.masks / mask).string());
  add_masks(proposal, masks);
  return proposal;
}

}  // namespace tutti
