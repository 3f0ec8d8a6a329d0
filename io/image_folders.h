#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

// The endings of names of readable image files: torchvision's ImageFolder's, and more.
inline constexpr std::string_view kImageEndings[] = {".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp",
                                                     ".gif", ".tif",  ".tiff", ".ppm", ".pgm",  ".pbm"};

// True if the name ends so, in any case; a name that is but an ending is none.
bool is_image_name(std::string_view name);
// Counts files that are left out, by the endings of their names.
class LeftOutFiles {
 public:
  void add(std::string_view name);
  void add(const LeftOutFiles& others);
  bool empty() const { return count_ == 0; }
  // "9 files are left out: 5 .heic, 4 .txt"; "" if there are none.
  std::string text() const;

 private:
  int64_t count_ = 0;
  std::map<std::string, int64_t, std::less<>> by_ending_;
};

// "holds no .jpg, .jpeg, ... or .pbm; 3 files are left out: 3 .heic"
std::string no_image_text(const LeftOutFiles& others = {});

struct FolderEntries {
  std::vector<std::string> folders, images;  // names, sorted; without hidden files and broken links
  LeftOutFiles others;
};
// What is in a folder. Throws UserError.
FolderEntries entries_of_folder(const std::string& path);

// Calls use(path) for the images of root/below and of its folders, sorted within each folder. `path` is
// relative to `root`. Returns the other files. Throws UserError.
LeftOutFiles for_each_image(const std::string& root, const std::string& below,
                            const std::function<void(const std::string& path)>& use);

// Pictures of a folder, and masks of another with the same paths but for the ending. Paths are below the
// folders.
struct MaskedImages {
  std::vector<std::pair<std::string, std::string>> pairs;  // picture, mask
  std::vector<std::string> without_mask, without_picture;  // pictures; masks
  std::vector<std::string> twins;                          // two masks of one name, if there are any
  LeftOutFiles other_pictures, other_masks;                // files that are no images
};
// Throws UserError.
MaskedImages masked_images(const std::string& pictures, const std::string& masks);

}  // namespace tutti
