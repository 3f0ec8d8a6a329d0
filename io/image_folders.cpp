#include "io/image_folders.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int kMostDepth = 32, kMostFolders = 1'000'000;  // links may lead back
constexpr std::size_t kMostEndings = 100;                 // that are counted one by one
constexpr std::size_t kMostListed = 6;
constexpr std::size_t kLongestEnding = 12;
constexpr const char* kOther = "of other names";

std::string ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot > kLongestEnding) return kOther;
  return on_one_line(lower_case(name.substr(dot)));
}

LeftOutFiles visit_images(const std::string& root, const std::string& below,
                          const std::function<void(const std::string& path)>& use, int depth, int& folders) {
  if (depth > kMostDepth || ++folders > kMostFolders)
    throw UserError({root + '/' + below}, "is too deep: does a link lead back?");
  FolderEntries entries = entries_of_folder(root + '/' + below);
  for (const std::string& image : entries.images) use(below + '/' + image);
  for (const std::string& folder : entries.folders)
    entries.others.add(visit_images(root, below + '/' + folder, use, depth + 1, folders));
  return entries.others;
}

}  // namespace

bool is_image_name(std::string_view name) {
  return std::ranges::any_of(kImageEndings, [&](std::string_view ending) {
    return name.size() > ending.size() && lower_case(name.substr(name.size() - ending.size())) == ending;
  });
}

void LeftOutFiles::add(std::string_view name) {
  ++count_;
  std::string ending = ending_of(name);
  if (by_ending_.size() >= kMostEndings && !by_ending_.contains(ending)) ending = kOther;
  ++by_ending_[ending];
}

void LeftOutFiles::add(const LeftOutFiles& others) {
  count_ += others.count_;
  for (const auto& [ending, count] : others.by_ending_) by_ending_[ending] += count;
}

std::string LeftOutFiles::text() const {
  if (empty()) return "";
  std::vector<std::pair<std::string, int64_t>> endings(by_ending_.begin(), by_ending_.end());
  std::ranges::stable_sort(endings, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  std::string text = grouped(count_) + (count_ == 1 ? " file is left out: " : " files are left out: ");
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (i == kMostListed) return text + ", ...";
    text += (i == 0 ? "" : ", ") + grouped(endings[i].second) + ' ' + endings[i].first;
  }
  return text;
}

std::string no_image_text(const LeftOutFiles& others) {
  std::string text = "holds no";
  for (const std::string_view& ending : kImageEndings) {
    const bool is_first = &ending == std::begin(kImageEndings),
               is_last = &ending + 1 == std::end(kImageEndings);
    text += (is_first ? " " : is_last ? " or " : ", ") + std::string(ending);
  }
  return text + (others.empty() ? "" : "; ") + others.text();
}

FolderEntries entries_of_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) throw UserError({path}, std::string("cannot be opened as a folder: ") + std::strerror(errno));
  FolderEntries entries;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {  // others are not looked up
      struct stat facts {};
      if (stat((path + '/' + name).c_str(), &facts) != 0) continue;  // a link to nowhere
      is_folder = S_ISDIR(facts.st_mode);
    }
    if (is_folder)
      entries.folders.push_back(name);
    else if (is_image_name(name))
      entries.images.push_back(name);
    else
      entries.others.add(name);
  }
  std::ranges::sort(entries.folders);
  std::ranges::sort(entries.images);
  return entries;
}

LeftOutFiles for_each_image(const std::string& root, const std::string& below,
                            const std::function<void(const std::string& path)>& use) {
  int folders = 0;
  return visit_images(root, below, use, 0, folders);
}

MaskedImages masked_images(const std::string& pictures, const std::string& masks) {
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).replace_extension().string();
  };
  struct Mask {
    std::string path;
    bool is_used = false;
  };
  MaskedImages images;
  std::map<std::string, Mask> by_name;
  images.other_masks = for_each_image(masks, "", [&](const std::string& below) {
    const std::string mask = below.substr(1);
    const auto [known, is_new] = by_name.emplace(name_of(mask), Mask{mask});
    if (!is_new && images.twins.empty()) images.twins = {known->second.path, mask};
  });
  images.other_pictures = for_each_image(pictures, "", [&](const std::string& below) {
    const std::string picture = below.substr(1);
    const auto mask = by_name.find(name_of(picture));
    if (mask == by_name.end()) return images.without_mask.push_back(picture);
    mask->second.is_used = true;
    images.pairs.emplace_back(picture, mask->second.path);
  });
  for (const auto& [name, mask] : by_name)
    if (!mask.is_used) images.without_picture.push_back(mask.path);
  return images;
}

}  // namespace tutti
